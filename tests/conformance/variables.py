"""Variables that we add to a container where the reference adds none: to the letter, and nothing beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance.compare import ABSENT, MASTER

if TYPE_CHECKING:
    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference

_RANK = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def given(values: dict[str, str], *, rank: str) -> dict[str, Tree]:
    """Return variables with values, and the one that holds a node's number, by name."""
    found: dict[str, Tree] = {name: {"name": name, "value": value} for name, value in values.items()}
    return found | {rank: {"name": rank, "valueFrom": _RANK}}


def adds(found: Difference, ours: dict[str, Tree]) -> bool:
    """Match the variables of the first container that trains, where they are the reference's and ours beside them."""
    if not it.in_node(found, "env"):
        return False
    if it.is_owned(found):
        marks, keys = {f'k:{{"name":"{name}"}}' for name in ours}, it.keys(found, "env")
        return found.reference == ABSENT and (keys == marks if found.path.endswith(".f:env") else keys <= marks)
    if not isinstance(found.ours, list):
        name, _, field = found.path.rpartition(".env[")[2].partition("].")
        return name in ours and bool(found.ours == ours[name].get(field, ABSENT))
    theirs = {entry["name"]: entry for entry in found.reference} if isinstance(found.reference, list) else {}
    apart = {*MASTER} - theirs.keys() if isinstance(found.reference, list) else set()
    wanted = theirs | {name: entry for name, entry in ours.items() if name not in apart}
    return bool({entry["name"]: entry for entry in found.ours} == wanted)
