"""The table of promises, `tests/seeds/promises.txt`: each statement of the documents, in our own words, and its proof.

A line has the statement's id and digest, the verdict, the proof and the promise. Verdicts:

    holds           the proof is a test that fails if it does not
    waits for N     issue N brings it; the proof is a test that fails as soon as it is there
    says nothing    a sentence that promises nothing of software: a heading, a link, the page around the text

The proof of what nobody has tried may be `untried: FOLDER WORD`: no file there has that word. Then it waits, whether or
not it would work.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
TABLE: Final = ROOT / "tests/seeds/promises.txt"
HOLDS: Final = "holds"
SAYS_NOTHING: Final = "says nothing"
WAITING: Final = "tests/seeds/documents/test_waiting.py"
"""Where the tests stand that fail when something no longer waits."""
_UNTRIED: Final = "untried: "
_WAITS: Final = re.compile(r"waits for (\d+)$")


@dataclass(frozen=True)
class Promise:
    """A line of the table."""

    id: str
    digest: str
    verdict: str
    proof: str
    words: str

    @property
    def issue(self) -> int | None:
        """The issue that it waits for."""
        found = _WAITS.match(self.verdict)
        return int(found[1]) if found else None

    @property
    def untried(self) -> tuple[Path, str] | None:
        """The folder and the word that no file there has, where that is all there is to say."""
        if not self.proof.startswith(_UNTRIED):
            return None
        folder, word = self.proof.removeprefix(_UNTRIED).split()
        return ROOT / folder, word


def promises() -> list[Promise]:
    """Return the table."""
    lines = TABLE.read_text().splitlines()
    return [Promise(*line.split(" | ", 4)) for line in lines if line and not line.startswith("#")]


def runs_in_full_only(proof: str) -> bool:
    """Return whether a test runs only with FULL=1; a test that is not there is a KeyError."""
    module, _, name = proof.partition("::")
    return named_in(module)[name]


@functools.cache
def named_in(module: str) -> dict[str, bool]:
    """Return the tests that a module has, each with whether it runs only with FULL=1."""
    tree = ast.parse((ROOT / module).read_text())
    marks = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign) and _is_pytestmark(node)]
    whole = any("mark.full" in mark for mark in marks)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {
        function.name: whole or any("mark.full" in ast.unparse(one) for one in function.decorator_list)
        for function in functions
        if function.name.startswith("test_")
    }


def _is_pytestmark(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)
