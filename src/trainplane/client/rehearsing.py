"""What a TrainJob becomes and would change, by what a backend has; see `rendering`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import tree as trees
from trainplane.client.errors import InvalidError, NotFoundError
from trainplane.client.rendering import compare, render, render_stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.client.backends.backend import Backend
    from trainplane.client.rendering import Comparison, RenderedJob


async def rehearse(
    backend: Backend, job: str | Mapping[str, Any], runtime: Mapping[str, Any] | None = None
) -> RenderedJob:
    """Return what a TrainJob that exists, or a document, becomes on its runtime or on one that is given."""
    stored = isinstance(job, str)
    document = await backend.job_document(job) if isinstance(job, str) else dict(job)
    found = dict(runtime) if runtime is not None else await backend.runtime_document(document)
    return render_stored(document, found) if stored else render(document, found)


async def compare_with_stored(backend: Backend, document: Mapping[str, Any]) -> Comparison:
    """Return what a document would change of the TrainJob that has its name, if there is one."""
    job = dict(document)
    name = trees.text(job, "metadata", "name")
    if name is None:
        raise InvalidError("metadata.name must say which TrainJob the document is compared with")
    try:
        stored = await backend.job_document(name)
    except NotFoundError:
        stored = None
    return compare(stored, job, await backend.runtime_document(job))
