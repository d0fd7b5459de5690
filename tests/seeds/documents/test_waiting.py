"""What waits for another issue does not work today. A test here that fails says: it is there, so the table's verdict is
`holds`, with a test that shows it.
"""

from __future__ import annotations

import pytest

from tests.seeds.documents.promises import TABLE, promises

UNTRIED = {one.id: one.untried for one in promises() if one.untried}


@pytest.mark.parametrize("statement", UNTRIED)
def test_nobody_has_tried_it(statement: str) -> None:
    folder, word = UNTRIED[statement]
    files = [path for path in folder.rglob("*") if path.suffix in {".py", ".yaml", ".ipynb"}]
    assert [path for path in files if TABLE.parent / "documents" not in path.parents and word in path.read_text()] == []
