"""What kubelet makes of a container's variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


def environment(container: Tree, index: int) -> dict[str, str]:
    """Return the variables of the pod of an index: `$(NAME)` is a variable that stands earlier, or stays as it is."""
    known: dict[str, str] = {}
    for entry in container.get("env", ()):
        if "valueFrom" in entry:
            assert entry["valueFrom"]["fieldRef"]["fieldPath"] == _INDEX
            known[entry["name"]] = str(index)
        else:
            known[entry["name"]] = _REFERENCE.sub(lambda found: known.get(found[1], found[0]), entry["value"])
    return known
