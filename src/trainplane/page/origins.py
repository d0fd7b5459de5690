"""Where each field of a TrainJob's pods came from: the runtime, the TrainJob, a patch or a plugin.

By the same pipeline as the operator's, on the runtime as it is now. Of environments, commands, arguments and
annotations only the names are shown: what stands in them is the user's own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.page.markup import Html, folded, table, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trainplane.client.types.renderings import RenderedJob
    from trainplane.render.provenance import Path, Rendered

MOST_FIELDS: Final = 400
"""Fields of one kind of pods that are listed."""
_POD: Final = ("template", "spec", "template")
"""Where the pod stands in a replicated Job."""
_OWN: Final = frozenset({"command", "args", "annotations"})
HIDDEN: Final = "not shown here"


@dataclass(frozen=True)
class Field:
    """One field of a pod."""

    path: str
    value: str
    origin: str


@dataclass(frozen=True)
class PodOrigins:
    """The fields of the pods of one replicated Job."""

    name: str
    fields: tuple[Field, ...]


def origins_of(rendered: RenderedJob, *, values: bool = True) -> list[PodOrigins]:
    """Return the fields of each kind of pod, with their values or without."""
    jobset = next((one for one in rendered.objects if one.tree.get("kind") == names.JOBSET), None)
    if jobset is None:
        return []
    jobs = trees.entries(jobset.tree, "spec", "replicatedJobs")
    return [PodOrigins(str(job.get("name")), tuple(_fields(jobset, at, values=values))) for at, job in enumerate(jobs)]


def origins(pods: Sequence[PodOrigins]) -> Html:
    """Return each kind of pod: from whom it has how much, and field by field behind a fold."""
    return tag("div", *map(_pod, pods))


def _pod(one: PodOrigins) -> Html:
    counted = Counter(field.origin.partition(" ")[0] for field in one.fields).most_common()
    said = ", ".join(f"{number} from the {source}" for source, number in counted)
    rows = ((field.path, field.origin, field.value) for field in one.fields[:MOST_FIELDS])
    listed = table(f"Fields of the pods of {one.name}", ("field", "came from", "value"), rows)
    left = len(one.fields) - MOST_FIELDS
    more = [tag("p", f"and {left} more fields", class_="faint")] if left > 0 else []
    title = f"Pods of {one.name}: {len(one.fields)} fields, {said}"
    return folded(f"origins-{one.name}", title, tag("div", listed, *more))


def _fields(jobset: Rendered, at: int, *, values: bool) -> Iterator[Field]:
    begin = ("spec", "replicatedJobs", at, *_POD)
    for path, value, origin in jobset.leaves():
        if path[: len(begin)] == begin:
            shown = (HIDDEN if _is_own(path) else str(value)) if values else ""
            yield Field(_said(jobset.tree, path, len(begin)), shown, str(origin))


def _is_own(path: Path) -> bool:
    return not _OWN.isdisjoint(path) or ("env" in path and path[-1] != "name")


def _said(tree: Any, path: Path, begin: int) -> str:
    """Return a path below the pod as people write it, entries of lists by their names: `containers[node].image`."""
    words = ""
    for depth, step in enumerate(path):
        tree = trees.get(tree, step)
        if depth < begin:
            continue
        if isinstance(step, int):
            words += f"[{trees.text(tree, 'name') or step}]"
        else:
            words += f".{step}" if words else str(step)
    return words
