"""A TrainJob in place of one that exists: with another number of nodes, or one more attempt at what is over.

`spec.trainer` cannot change in the API and what is over stays so: the TrainJob is deleted and created again under its
name, and goes on from its last checkpoint. Before it is deleted, the cluster gets all that is needed to create it
again: a stand-in, a TrainJob that is suspended and in no queue. Whatever ends us in between, the next call goes on from
there.

    judge      would the cluster take it? (a rehearsal)   is it over, or must it be?
    keep       create the stand-in
    delete     the TrainJob, only as it was judged; wait until its pods are gone
    create     it again; then delete the stand-in
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import tree as trees
from trainplane.client.anew import anew, refuse_unfinished, retried
from trainplane.client.errors import JobTimeoutError, RefusedError, UnreachableError
from trainplane.kube import errors as kube
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.resources import TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from trainplane.api.tree import Tree
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock

GONE_SECONDS: Final = 120.0
"""How long pods may take to end: the grace period of Kubernetes, and some of Kueue's own."""
MANAGER: Final = "trainplane-sdk"
ATTEMPTS: Final = 6
"""To create it again, 31 seconds in all: an API server's restart."""
LOOK_SECONDS: Final = 0.5
"""Between two looks whether it is gone."""
LABEL_STANDS_FOR: Final = "trainplane.dev/stands-for"
"""On a stand-in: the TrainJob that it is a copy of."""
ANNOTATION_STANDS_FOR: Final = LABEL_STANDS_FOR
"""On a stand-in: what it has not got itself of the TrainJob, as JSON."""


@dataclass(frozen=True)
class Change:
    """Why a TrainJob is created again."""

    verb: str
    """What the user does once more where it was ended halfway: scale, retry."""
    judge: Callable[[Tree], None]
    """Raises RefusedError for a TrainJob that it cannot be done with."""
    document: Callable[[Tree], Tree]
    """Return what to create in place of a TrainJob."""


def scaling(num_nodes: int) -> Change:
    """Return the change to another number of nodes."""
    return Change("scale", _refuse_finished, lambda job: scaled(job, num_nodes))


def retrying() -> Change:
    """Return the change to another attempt."""
    return Change("retry", refuse_unfinished, lambda job: retried(job, job["metadata"]["name"]))


def scaled(job: Tree, num_nodes: int) -> Tree:
    """Return the document to create in place of a TrainJob: what its user wrote, with another number of nodes."""
    document = anew(job)
    document["spec"]["trainer"] = {**(document["spec"].get("trainer") or {}), "numNodes": num_nodes}
    return document


async def replace(
    client: Client,
    namespace: str,
    name: str,
    change: Change,
    *,
    clock: Clock,
    create: Callable[[Tree], Awaitable[Tree]],
    is_done: Callable[[Tree], Awaitable[bool]],
) -> None:
    """Delete the TrainJob and `create` it again, changed; one that is so by `is_done` is left alone.

    Raises:
        RefusedError: the change cannot be made of it.
        JobTimeoutError: it does not go away; nothing was created.
        UnreachableError: it is deleted, and could not be created again yet; the stand-in has it.
        KubeError: the cluster refuses the new one, before anything was deleted; or there is no such TrainJob.
    """
    kept = await client.list_all(TRAIN_JOBS, namespace, labels={LABEL_STANDS_FOR: name}, limit=0)
    job = await _find(client, namespace, name, needed=not kept)
    if kept and (job is None or trees.get(job, "metadata", "deletionTimestamp")):
        document = change.document(_restored(kept[0], name))  # somebody was ended halfway
    else:
        change.judge(job or {})
        if await is_done(job or {}):
            await _remove(client, namespace, kept)
            return
        document = change.document(job or {})
        kept += await _delete(client, namespace, job or {}, document, change)
    if job is not None:
        await _until_gone(client, namespace, job, clock, change)
    await _create(create, document, clock, kept[-1]["metadata"]["name"], change)
    await _remove(client, namespace, kept)


async def _remove(client: Client, namespace: str, kept: Sequence[Tree]) -> None:
    """Delete stand-ins that are needed no more."""
    for entry in kept:
        with contextlib.suppress(kube.NotFoundError):
            await client.delete(TRAIN_JOBS, entry["metadata"]["name"], namespace, type_=bytes)


async def _find(client: Client, namespace: str, name: str, *, needed: bool) -> Tree | None:
    try:
        found: Tree = await client.get(TRAIN_JOBS, name, namespace)
    except kube.NotFoundError:
        if needed:
            raise
        return None
    return found


async def _delete(client: Client, namespace: str, job: Tree, document: Tree, change: Change) -> list[Tree]:
    """Delete a TrainJob as it was judged, and return what stands for it from then on."""
    name = job["metadata"]["name"]
    rehearsal = trees.put(document, "metadata", "name", value=_stand_in(name))
    await client.create(TRAIN_JOBS, rehearsal, namespace, field_manager=MANAGER, dry_run=True)
    kept = await client.create(TRAIN_JOBS, _standing_for(document), namespace, field_manager=MANAGER)
    try:
        while True:
            change.judge(job)
            uid, version = job["metadata"]["uid"], job["metadata"]["resourceVersion"]
            as_judged = {"preconditions_uid": uid, "preconditions_version": version}
            try:
                await client.delete(TRAIN_JOBS, name, namespace, propagation="Foreground", type_=bytes, **as_judged)
            except kube.ConflictError:
                job = await client.get(TRAIN_JOBS, name, namespace)
                if job["metadata"]["uid"] != uid:
                    raise
            else:
                return [kept]
    except (kube.ApiError, RefusedError):  # nothing was deleted
        await client.delete(TRAIN_JOBS, kept["metadata"]["name"], namespace, type_=bytes)
        raise


async def _until_gone(client: Client, namespace: str, job: Tree, clock: Clock, change: Change) -> None:
    name, deadline = job["metadata"]["name"], clock.monotonic() + GONE_SECONDS
    while await _is_there(client, namespace, name, job["metadata"]["uid"]):
        if clock.monotonic() > deadline:
            raise JobTimeoutError(
                f"TrainJob {name} is being deleted for {GONE_SECONDS:g} s and is still there: something holds it "
                f"(finalizers: {', '.join(trees.get(job, 'metadata', 'finalizers') or ('none',))}). "
                f"{change.verb.capitalize()} it again when it is gone: a suspended copy of it is kept for that"
            )
        await clock.sleep(LOOK_SECONDS)


async def _create(
    create: Callable[[Tree], Awaitable[Tree]], document: Tree, clock: Clock, kept: str, change: Change
) -> None:
    """Create it, again and again where that may help: a webhook is down, the cluster does not answer."""
    name = document["metadata"]["name"]
    for attempt in range(ATTEMPTS):
        try:
            await create(document)
        except kube.KubeError as error:
            if not error.retryable or attempt == ATTEMPTS - 1:
                raise UnreachableError(
                    f"TrainJob {name} is deleted and could not be created again: {error}. Nothing of it is lost: "
                    f"{change.verb} it again, which creates it from its suspended copy {kept}"
                ) from error
            await clock.sleep(2**attempt)
        else:
            return


def _refuse_finished(job: Tree) -> None:
    if is_finished(conditions_of(job)):
        raise RefusedError(
            f"TrainJob {job['metadata']['name']} is over and cannot be scaled: that would train again. Submit it under "
            f"another name"
        )


def _standing_for(document: Tree) -> Tree:
    """Return the stand-in of a document: it runs nowhere, and says what it would be."""
    metadata = document["metadata"]
    noted = {"metadata": metadata, "suspend": document["spec"].get("suspend")}
    return {
        **document,
        "metadata": {
            "name": _stand_in(metadata["name"]),
            "labels": {LABEL_STANDS_FOR: metadata["name"]},
            "annotations": {ANNOTATION_STANDS_FOR: json.dumps(noted)},
        },
        "spec": {**document["spec"], "suspend": True},
    }


def _restored(kept: Tree, name: str) -> Tree:
    """Return the document that a stand-in was made of."""
    noted: Tree = json.loads((trees.get(kept, "metadata", "annotations") or {}).get(ANNOTATION_STANDS_FOR) or "{}")
    spec = {key: value for key, value in kept["spec"].items() if key != "suspend"}
    if noted.get("suspend") is not None:
        spec["suspend"] = noted["suspend"]
    return {**kept, "metadata": {**(noted.get("metadata") or {}), "name": name}, "spec": spec}


def _stand_in(name: str) -> str:
    """Return a name that nobody has, as long as the other: what is judged by length is judged alike."""
    import secrets  # noqa: PLC0415 slow to import

    return ("scaling-" + secrets.token_hex(32))[: max(len(name), 16)]


async def _is_there(client: Client, namespace: str, name: str, uid: str) -> bool:
    try:
        found = await client.get(TRAIN_JOBS, name, namespace)
    except kube.NotFoundError:
        return False
    return bool(found["metadata"]["uid"] == uid)
