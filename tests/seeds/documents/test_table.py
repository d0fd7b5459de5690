"""The documents and the table say the same: no statement is left out, none has changed, none is there no more."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import yaml

from lab.paths import REPOSITORY
from tests.e2e.localise import EXAMPLES
from tests.seeds.documents.indentation import NoPlaceError, indented
from tests.seeds.documents.promises import HOLDS, SAYS_NOTHING, promises
from tests.seeds.documents.reading import documents, pieces, statements

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from tests.suite import SuiteReport

STATEMENTS = statements()
PROMISES = promises()
OWN_WORDS = 6
"""How many words in a row may be a document's at most."""

HEADS = {"| CRD", "| Field", "| Framework", "| ReplicatedJob", "| Runtime", "| File"}
"""How the heads of tables begin, which are no rows."""

needs_documents = pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")


@needs_documents
def test_every_statement_is_in_the_table(report: SuiteReport) -> None:
    assert {one.id: one.digest for one in STATEMENTS} == {one.id: one.digest for one in PROMISES}
    assert len(STATEMENTS) == len(PROMISES)
    verdicts = Counter(one.verdict for one in PROMISES)
    saying = len(PROMISES) - verdicts[SAYS_NOTHING]
    report.figure("statements", saying)
    report.figure("hold", verdicts[HOLDS])
    report.figure("waiting", saying - verdicts[HOLDS])
    for verdict in sorted(verdicts.keys() - {HOLDS}):
        report.figure(verdict.replace(" ", "_"), verdicts[verdict])


@needs_documents
def test_no_code_of_a_document_is_left_unread() -> None:
    for path in documents():
        text = path.read_text()
        read = "\n".join(piece for _, piece in pieces(text))
        for code in (r"kubectl \w+ [\w-]+", r"apiVersion: \S+", r"\bclient\.\w+\(", r"^\| \w+", r"helm \w+"):
            assert set(re.findall(code, text, re.MULTILINE)) - set(re.findall(code, read, re.MULTILINE)) <= HEADS


@needs_documents
def test_only_white_space_is_repaired() -> None:
    for one in STATEMENTS:
        if one.kind == "yaml":
            assert "".join(indented(one.text).split()) == "".join(one.text.split())
            assert isinstance(yaml.safe_load(indented(one.text)), dict)


@needs_documents
def test_the_words_of_the_table_are_our_own() -> None:
    theirs = {run for path in documents() for run in _runs(path.read_text())}
    assert [one.words for one in PROMISES for run in _runs(one.words) if run in theirs] == []


def _runs(text: str) -> Iterator[str]:
    words = text.lower().split()
    return (" ".join(words[at : at + OWN_WORDS + 1]) for at in range(len(words) - OWN_WORDS))


@needs_documents
def test_examples_have_the_documents_objects_as_they_are() -> None:
    """Compare whole objects and parts of objects; `tests/legacy/older` applies objects of the older shape."""
    have = [part for path in sorted(EXAMPLES.glob("*.yaml")) for one in _load(path) for part in _parts(one)]
    wanted = {one.id: yaml.safe_load(indented(one.text)) for one in STATEMENTS if one.kind == "yaml"}
    lacking = [name for name, document in wanted.items() if document not in have]
    older = [name for name, document in wanted.items() if document.get("apiVersion") == "kubeflow.org/v2alpha1"]
    assert lacking == older == ["002-yaml-1", "002-yaml-2", "002-yaml-3", "004-yaml-4", "004-yaml-7"]


def _load(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))


def _parts(tree: Any) -> Iterator[Any]:
    """Yield an object and what stands under each of its keys, as a part by itself."""
    yield tree
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in children:
        if isinstance(key, str):
            yield {key: value}
        yield from _parts(value)


# -- the repair, on YAML that has its indentation ---------------------------------------------------------------------

WHOLE = [*sorted((REPOSITORY / "runtimes").glob("*.yaml")), *sorted(EXAMPLES.glob("*.yaml"))]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_indentation_that_is_taken_away_comes_back(path: Path) -> None:
    for document in _load(path):
        if document["kind"] in {"TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"}:
            text = yaml.safe_dump(_without_blocks(document), sort_keys=False, width=1000)
            flat = "".join(f"{line.strip()}\n" for line in text.splitlines())
            assert yaml.safe_load(indented(flat)) == _without_blocks(document)


def _without_blocks(tree: Any) -> Any:
    """Return a tree without texts of several lines, whose end cannot be seen, and without lists in lists."""
    if isinstance(tree, dict):
        return {key: _without_blocks(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_without_blocks(value) for value in tree]
    return tree.splitlines()[0] if isinstance(tree, str) and "\n" in tree else tree


def test_what_fits_nowhere_is_refused() -> None:
    with pytest.raises(NoPlaceError, match="no indentation"):
        indented("apiVersion: v1\nkind: TrainJob\nspec:\nnonsense:\n")
    with pytest.raises(NoPlaceError, match="no part of a runtime is called nonsense"):
        indented("nonsense:\na: b\n")
