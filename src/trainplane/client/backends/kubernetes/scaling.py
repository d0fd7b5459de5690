"""Another number of nodes for a TrainJob that exists.

`spec.trainer` cannot change in the API, so the TrainJob is deleted and created again under its name. What the cluster
would refuse is found out first, by a rehearsal under another name; the training goes on from its last checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.resources import TRAIN_JOBS
from trainplane.client.errors import JobTimeoutError, UnreachableError
from trainplane.kube import errors as kube

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
) -> None:
    """Delete the TrainJob and `create` it again with that number of nodes.

    Raises:
        JobTimeoutError: it does not go away; nothing was created.
        UnreachableError: it is deleted, and the cluster stopped answering before it was created again.
        KubeError: the cluster refuses the new one: then nothing was deleted.
    """
    job = await client.get(TRAIN_JOBS, name, namespace)
    uid = job["metadata"]["uid"]
    document = scaled(job, num_nodes)
    rehearsal = trees.put(document, "metadata", "name", value=_stand_in(name))
    await client.create(TRAIN_JOBS, rehearsal, namespace, field_manager=MANAGER, dry_run=True)
    await client.delete(TRAIN_JOBS, name, namespace, propagation="Foreground", preconditions_uid=uid, type_=bytes)
    deadline = clock.monotonic() + GONE_SECONDS
    while await _is_there(client, namespace, name, uid):
        if clock.monotonic() > deadline:
            raise JobTimeoutError(
                f"TrainJob {name} is being deleted for {GONE_SECONDS:g} s and is still there: something holds it "
                f"(finalizers: {', '.join(trees.get(job, 'metadata', 'finalizers') or ('none',))})"
            )
        await clock.sleep(LOOK_SECONDS)
    for attempt in range(ATTEMPTS):
        try:
            await create(document)
        except kube.TransportError as error:
            if attempt == ATTEMPTS - 1:
                raise UnreachableError(
                    f"TrainJob {name} is deleted and could not be created again: {error}. Submit it again"
                ) from error
            await clock.sleep(2**attempt)
        else:
            return


def _stand_in(name: str) -> str:
    """Return a name that nobody has, as long as the other: what is judged by length is judged alike."""
    import secrets  # noqa: PLC0415 slow to import

    return ("r" + secrets.token_hex(32))[: max(len(name), 16)]


async def _is_there(client: Client, namespace: str, name: str, uid: str) -> bool:
    try:
        found = await client.get(TRAIN_JOBS, name, namespace)
    except kube.NotFoundError:
        return False
    return bool(found["metadata"]["uid"] == uid)
