"""docs/runtimes.md names every field of a runtime that is ours to explain."""

from __future__ import annotations

import msgspec
import pytest

from lab.paths import REPOSITORY
from trainplane.api.runtime import MLPolicy, PodGroupPolicy

PAGE = (REPOSITORY / "docs/runtimes.md").read_text()


def fields(kind: type) -> list[str]:
    """Return the fields of a type and of those below it, as YAML spells them."""
    found = []
    for one in msgspec.structs.fields(kind):
        found.append(one.encode_name)
        described = msgspec.inspect.type_info(one.type)
        for part in described.types if isinstance(described, msgspec.inspect.UnionType) else (described,):
            if isinstance(part, msgspec.inspect.StructType):
                found += fields(part.cls)
    return found


@pytest.mark.parametrize("kind", [MLPolicy, PodGroupPolicy])
def test_no_field_is_left_out(kind: type) -> None:
    assert [name for name in fields(kind) if name not in PAGE] == []
