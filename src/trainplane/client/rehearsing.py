"""What a TrainJob becomes and would change, by what a backend has; see `rendering`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import tree as trees
from trainplane.client.errors import InvalidError, NotFoundError
from trainplane.client.rendering import compare, render, render_stored
from trainplane.client.submission import check_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree
    from trainplane.client.backends.backend import Backend
    from trainplane.client.types.renderings import Comparison, RenderedJob


async def rehearse(
    backend: Backend, job: str | Mapping[str, Any], runtime: Mapping[str, Any] | None = None
) -> RenderedJob:
    """Return what a TrainJob that exists, or a document, becomes on its runtime or on one that is given."""
    if isinstance(job, str):
        stored = await backend.get_document(job)
        return render_stored(stored, await _runtime_of(backend, stored, runtime))
    check_document(job)
    return render(dict(job), await _runtime_of(backend, dict(job), runtime))


async def _runtime_of(backend: Backend, job: Tree, given: Mapping[str, Any] | None) -> Tree:
    return dict(given) if given is not None else await backend.runtime_document(job)


async def compare_with_stored(backend: Backend, document: Mapping[str, Any]) -> Comparison:
    """Return what a document would change of the TrainJob that has its name, if there is one."""
    check_document(document)
    job = dict(document)
    name = trees.text(job, "metadata", "name")
    if name is None:
        raise InvalidError("metadata.name must say which TrainJob the document is compared with")
    try:
        stored = await backend.get_document(name)
    except NotFoundError:
        stored = None
    return compare(stored, job, await backend.runtime_document(job))
