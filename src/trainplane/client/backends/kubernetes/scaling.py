"""Another number of nodes for a TrainJob that exists.

`spec.trainer` cannot change in the API, so the TrainJob is deleted and created again under its name; the training goes
on from its last checkpoint. Before it is deleted, the cluster gets all that is needed to create it again: a stand-in, a
TrainJob that is suspended and in no queue. Whatever ends us in between, the next `scale_job` goes on from there.

    judge      would the cluster take it? (a rehearsal)   is it over?
    keep       create the stand-in
    delete     the TrainJob, only as it was judged; wait until its pods are gone
    create     it again; then delete the stand-in
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
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
_SERVERS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations that describe the object that was."""


def scaled(job: Tree, num_nodes: int) -> Tree:
    """Return the document to create in place of a TrainJob: what its user wrote, with another number of nodes."""
    metadata: dict[str, Any] = {"name": trees.get(job, "metadata", "name")}
    labels = trees.get(job, "metadata", "labels") or {}
    annotations = {k: v for k, v in (trees.get(job, "metadata", "annotations") or {}).items() if k not in _SERVERS}
    metadata |= {"labels": labels} if labels else {}
    metadata |= {"annotations": annotations} if annotations else {}
    spec = dict(trees.get(job, "spec") or {})
    spec["trainer"] = {**(spec.get("trainer") or {}), "numNodes": num_nodes}
    patches = [
        entry for entry in spec.pop("runtimePatches", None) or () if entry["manager"] != names.PATCH_MANAGER_KUEUE
    ]
    if patches:
        spec["runtimePatches"] = patches
    if names.LABEL_QUEUE in labels:
        spec.pop("suspend", None)
    return {"apiVersion": names.API_VERSION, "kind": names.TRAIN_JOB, "metadata": metadata, "spec": spec}


async def replace(
    client: Client,
    namespace: str,
    name: str,
    num_nodes: int,
    *,
    clock: Clock,
    create: Callable[[Tree], Awaitable[Tree]],
    nodes_of: Callable[[Tree], Awaitable[int | None]],
) -> None:
    """Delete the TrainJob and `create` it again with that number of nodes; one that has it by `nodes_of` is left alone.

    Raises:
        RefusedError: it is over: to start it again would be another training.
        JobTimeoutError: it does not go away; nothing was created.
        UnreachableError: it is deleted, and could not be created again yet; the stand-in has it.
        KubeError: the cluster refuses the new one, before anything was deleted; or there is no such TrainJob.
    """
    kept = await client.list_all(TRAIN_JOBS, namespace, labels={LABEL_STANDS_FOR: name}, limit=0)
    job = await _find(client, namespace, name, needed=not kept)
    if kept and (job is None or trees.get(job, "metadata", "deletionTimestamp")):
        document = scaled(_restored(kept[0], name), num_nodes)  # somebody was ended halfway
    elif await _has(job or {}, num_nodes, nodes_of):
        await _remove(client, namespace, kept)
        return
    else:
        document = scaled(job or {}, num_nodes)
        kept += await _delete(client, namespace, job or {}, document)
    if job is not None:
        await _until_gone(client, namespace, job, clock)
    await _create(create, document, clock, kept[-1]["metadata"]["name"])
    await _remove(client, namespace, kept)


async def _has(job: Tree, num_nodes: int, nodes_of: Callable[[Tree], Awaitable[int | None]]) -> bool:
    """Return whether a TrainJob that is not over has that number of nodes."""
    _refuse_finished(job)
    return await nodes_of(job) == num_nodes


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


async def _delete(client: Client, namespace: str, job: Tree, document: Tree) -> list[Tree]:
    """Delete a TrainJob that is not over, and return what stands for it from then on."""
    name = job["metadata"]["name"]
    _refuse_finished(job)
    rehearsal = trees.put(document, "metadata", "name", value=_stand_in(name))
    await client.create(TRAIN_JOBS, rehearsal, namespace, field_manager=MANAGER, dry_run=True)
    kept = await client.create(TRAIN_JOBS, _standing_for(document), namespace, field_manager=MANAGER)
    try:
        while True:
            _refuse_finished(job)
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


async def _until_gone(client: Client, namespace: str, job: Tree, clock: Clock) -> None:
    name, deadline = job["metadata"]["name"], clock.monotonic() + GONE_SECONDS
    while await _is_there(client, namespace, name, job["metadata"]["uid"]):
        if clock.monotonic() > deadline:
            raise JobTimeoutError(
                f"TrainJob {name} is being deleted for {GONE_SECONDS:g} s and is still there: something holds it "
                f"(finalizers: {', '.join(trees.get(job, 'metadata', 'finalizers') or ('none',))}). Scale it again "
                f"when it is gone: a suspended copy of it is kept for that"
            )
        await clock.sleep(LOOK_SECONDS)


async def _create(create: Callable[[Tree], Awaitable[Tree]], document: Tree, clock: Clock, kept: str) -> None:
    """Create it, again and again where that may help: a webhook is down, the cluster does not answer."""
    name = document["metadata"]["name"]
    for attempt in range(ATTEMPTS):
        try:
            await create(document)
        except kube.KubeError as error:
            if not error.retryable or attempt == ATTEMPTS - 1:
                raise UnreachableError(
                    f"TrainJob {name} is deleted and could not be created again: {error}. Nothing of it is lost: "
                    f"scale it again, which creates it from its suspended copy {kept}"
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
