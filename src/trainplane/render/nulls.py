"""What nobody wrote and Go writes as null, written as what it stands for: no sources, and the core group.

JobSet's webhook passes every JobSet through Go's types, and these fields come out of them as null where they were left
out. JobSet's own schema refuses that, so that such a JobSet would fail at every reconcile. Kubernetes takes an empty
list and an empty group for the same as none. The other fields that Go writes as null have a default, or must be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree
    from trainplane.render.provenance import Origin, Provenance

Places: TypeAlias = "Mapping[str, Places | str | tuple[()]]"
"""Where they stand: fields of an object, or of the objects of a list; a text or no entries is what is written there."""

_CLAIM: Final[Places] = {"dataSource": {"apiGroup": ""}, "dataSourceRef": {"apiGroup": ""}}
_VOLUME: Final[Places] = {
    "projected": {"sources": ()},
    "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIM}},
}
JOBSET_SPEC: Final[Places] = {
    "replicatedJobs": {"template": {"spec": {"template": {"spec": {"volumes": _VOLUME}}}}},
    "volumeClaimPolicies": {"templates": {"spec": _CLAIM}},
}


def fill_nulls(holder: Tree, provenance: Provenance, author: Origin, places: Places = JOBSET_SPEC) -> None:
    """Write what a JobSet's spec leaves out, in place, as `author`; what has another form than expected stays."""
    for name, within in places.items():
        held: Any = holder.get(name)
        if isinstance(within, str | tuple):
            if held is None:
                holder[name] = within if isinstance(within, str) else []
                provenance.field(holder, name, author)
            continue
        for entry in held if isinstance(held, list) else (held,):
            if isinstance(entry, dict):
                fill_nulls(entry, provenance, author, within)
