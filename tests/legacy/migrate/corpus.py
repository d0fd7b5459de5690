"""The corpus: older jobs as people write them, one a file, with what is expected of each in `expected.yaml`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from trainplane.legacy.migrate.outcome import Migration, RefusedError

FOLDER = Path(__file__).parent / "corpus"
EXPECTED = Path(__file__).parent / "expected.yaml"

Tree = dict[str, Any]


def manifests() -> dict[str, Tree]:
    """Return the jobs of the corpus by the names of their files."""
    return {file.stem: yaml.safe_load(file.read_text()) for file in sorted(FOLDER.glob("*.yaml"))}


@functools.cache
def expectations() -> dict[str, Tree]:
    """Return what is expected of each."""
    found: dict[str, Tree] = yaml.safe_load(EXPECTED.read_text())
    return found


def converted(moved: Migration) -> Tree:
    """Return what a migration comes to, as `expected.yaml` has it."""
    told: Tree = {"becomes": [f"{one['kind']} {_runtime(one)}".strip() for one in moved.objects]}
    for outcome in ("changed", "left out"):
        fields = sorted({note.field for note in moved.notes if note.outcome == outcome})
        if fields:
            told[outcome] = fields
    if moved.differences:
        told["differences"] = [str(one) for one in moved.differences]
    return told


def refused(error: RefusedError) -> Tree:
    """Return what a refusal comes to, as `expected.yaml` has it."""
    return {"refused": [finding.path for finding in error.findings]}


def _runtime(tree: Tree) -> str:
    name = tree["spec"].get("runtimeRef", {}).get("name")
    return f"on {name}" if name else ""
