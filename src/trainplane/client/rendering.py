"""What a TrainJob becomes, by the operator's own pipeline, without submitting it; nothing is written anywhere.

The runtime is as it is now. What an operator adds by its own settings is not in it: the container that sends an output,
and the address and token by which a training reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import document
from trainplane.api import tree as trees
from trainplane.api.errors import DecodeError
from trainplane.api.trainjob import TrainJob
from trainplane.client.anew import anew
from trainplane.client.backends.local.admission import admit
from trainplane.client.backends.local.rendering import read_runtime
from trainplane.client.comparing import changes
from trainplane.client.errors import InvalidError, RefusedError
from trainplane.client.types.renderings import Comparison, Difference, RenderedJob
from trainplane.render.errors import RenderError
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.provenance import Rendered

_NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""In owner references, where the TrainJob does not exist."""


def render(job: Tree, runtime: Tree) -> RenderedJob:
    """Return what a document becomes that is not submitted yet.

    Raises:
        RefusedError: a cluster would refuse it; the message has all reasons.
    """
    metadata = {"namespace": "default", **trees.fields(job, "metadata"), "uid": _NO_UID}
    admitted = admit({**job, "metadata": metadata}, runtime)
    return _render(admitted.tree, runtime, admitted.warnings)


def render_stored(job: Tree, runtime: Tree) -> RenderedJob:
    """Return what a TrainJob becomes that a cluster has.

    Raises:
        RefusedError: it cannot be rendered on this runtime.
    """
    return _render(job, runtime, ())


def _render(job: Tree, runtime: Tree, warnings: tuple[str, ...]) -> RenderedJob:
    try:
        rendering = Pipeline.default().render(document.read(job, TrainJob), read_runtime(runtime))
    except RenderError as error:
        raise RefusedError(f"TrainJob {trees.get(job, 'metadata', 'name')} cannot be rendered: {error}") from error
    except DecodeError as error:
        raise InvalidError(f"TrainJob {trees.get(job, 'metadata', 'name')}: {error}") from error
    drawn = tuple(f"{entry.kind} {entry.name}" for entry in rendering.kept)
    return RenderedJob(job, rendering.objects, drawn, tuple(warnings))


def compare(stored: Tree | None, job: Tree, runtime: Tree) -> Comparison:
    """Return what a document would change of the TrainJob that is stored under its name, and of what is made of it.

    Of the TrainJob, what the document does not name stays as it is, as `kubectl apply` of a first document has it; so
    what admission and Kueue wrote there is no difference.

    Raises:
        RefusedError: a cluster would refuse the document whatever is stored.
    """
    if stored is None:
        new = render(job, runtime)
        whole = [*_between({}, anew(new.job)), *_made((), new.objects)]
        return Comparison(tuple(whole), exists=False)
    merged = _merged(stored, job)
    refusal = ""
    try:
        admit({key: value for key, value in merged.items() if key != "status"}, runtime, stored=stored)
    except RefusedError as error:
        refusal = str(error)
    before, after = render_stored(stored, runtime), render_stored(merged, runtime)
    told = [*_between(stored, merged), *_made(before.objects, after.objects)]
    return Comparison(tuple(told), exists=True, refusal=refusal if told else "")


def _merged(stored: Tree, job: Tree) -> Tree:
    """Return what is stored with what a document says in its place; the server's fields and others' patches stay."""
    marks = {key: here for key in ("labels", "annotations") if (here := trees.fields(job, "metadata", key))}
    said: Tree = {"metadata": marks, "spec": trees.fields(job, "spec")}
    merged = trees.merge(stored, said)
    patches = trees.entries(job, "spec", "runtimePatches")
    if patches:
        managers = {entry.get("manager") for entry in patches}
        others = [e for e in trees.entries(stored, "spec", "runtimePatches") if e.get("manager") not in managers]
        merged["spec"]["runtimePatches"] = [*others, *patches]
    return merged


def _made(before: tuple[Rendered, ...], after: tuple[Rendered, ...]) -> Iterator[Difference]:
    """Yield what differs between the objects that two TrainJobs become."""
    old, new = {_subject(one.tree): one for one in before}, {_subject(one.tree): one for one in after}
    for subject in [*old, *(subject for subject in new if subject not in old)]:
        yield from _between_rendered(old.get(subject), new.get(subject))


def _between_rendered(old: Rendered | None, new: Rendered | None) -> Iterator[Difference]:
    for one in _between(old.tree if old else {}, new.tree if new else {}):
        path = one.field.path
        holder = old if one.field.is_gone else new
        yield Difference(one.subject, one.field, holder.origin_of(*path) if holder and path else None)


def _between(old: Tree, new: Tree) -> Iterator[Difference]:
    subject = _subject(new or old)
    for field in changes(old, new):
        yield Difference(subject, field)


def _subject(tree: Tree) -> str:
    return f"{tree['kind']} {trees.get(tree, 'metadata', 'name')}"
