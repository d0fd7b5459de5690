"""Users and the administrator: what they send to the API server, as kubectl would."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.apiserver import JOBSETS, RUNTIMES, TRAINJOBS
from trainplane.api.names import snapshot_name
from trainplane.kube.client import MERGE_PATCH
from trainplane.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    InternalServerError,
    UnavailableError,
)
from trainplane.kube.resource import EVENTS as EVENT_RESOURCE
from trainplane.kube.resource import Key
from trainplane.kube.testing.verbs import Asking, Target, collection_of
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.simulation.apiserver import ApiServer
    from trainplane.kube.testing.faults import Verb
    from trainplane.kube.testing.storage import Change, Collection, Tree

EVENTS, SNAPSHOTS = collection_of(EVENT_RESOURCE), collection_of(CONFIG_MAPS)
NAMESPACE = "team"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
FATE = "simulation/fate"
"""The annotation that says how pods of a TrainJob end: seconds, then an exit code for each attempt."""
PODS_NOTE = "simulation/pods"
"""The annotation that says how pods of a TrainJob react to SIGTERM and to lost peers (`kubelet.PodKind`), as JSON."""

MULTIKUEUE = "kueue.x-k8s.io/multikueue"
AFTER = "trainplane.dev/after"
GATES = "kueue.x-k8s.io/admission-gated-by"

PATIENCE = 40
"""Tries, some seconds apart, after which a person gives up."""

ADVICE = "delete it, and the runtime is kept as it is now"
"""What an Event says of a snapshot that nothing shows to be true: kept by a leader that got no further, and its runtime
was edited since. Nobody of ours may delete ConfigMaps, so the TrainJob waits for somebody who does."""

HEEDED_SECONDS = 30.0
"""After which somebody does."""


async def ask(
    server: ApiServer,
    who: str,
    verb: Verb,
    collection: Collection,
    key: Key,
    *,
    body: Any = None,
) -> Tree:
    """Send one request to the API server; raises ApiError."""
    name = "" if verb == "create" else key.name
    target = Target(collection, key.namespace, name, "")
    return await server.answer(
        Asking(verb, "/apis", {}, MERGE_PATCH, target, b"" if body is None else msgspec.json.encode(body)), who
    )


async def insist(server: ApiServer, verb: Verb, collection: Collection, key: Key, body: Any = None) -> ApiError | None:
    """Send until it is done; returns why it was refused, and None if it was not."""
    refusal: ApiError | None = None
    for _ in range(PATIENCE):
        try:
            await ask(server, "user", verb, collection, key, body=body)
        except (ConflictError, InternalServerError, UnavailableError) as error:
            refusal = error
            await asyncio.sleep(2.0)
        except ApiError as error:
            return error
        else:
            return None
    return refusal


def train_job(name: str, told: Tree) -> Tree:
    """Return a TrainJob as a file of a user has it."""
    queued = told.get("queue") or told.get("dispatched")
    labels = {QUEUE_LABEL: "queue"} if queued else {}
    annotations = {FATE: " ".join(map(str, [told["seconds"], *told["codes"]]))}
    if told.get("pods"):
        annotations[PODS_NOTE] = msgspec.json.encode(told["pods"]).decode()
    if told.get("after"):
        annotations[AFTER] = told["after"]
    spec: Tree = {
        "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime", "name": told["runtime"]},
        "managedBy": MULTIKUEUE if told.get("dispatched") else "trainer.kubeflow.org/trainjob-controller",
        "suspend": bool(told.get("suspend") or queued),
        "trainer": {"numNodes": told["nodes"]},
    }
    if told.get("deadline"):
        spec["activeDeadlineSeconds"] = told["deadline"]
    if queued:
        spec["runtimePatches"] = [
            {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {"template": {"spec": {}}}}
        ]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def runtime(name: str, image: str, **spec: Any) -> Tree:
    """Return a ClusterTrainingRuntime whose pods run an image; `spec` is the JobSet's."""
    is_shipped = name in MOST_RESTARTS
    job: Tree = {
        "name": "node",
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "backoffLimit": 0,
                **({"podFailurePolicy": FAIL_WHEN_DISRUPTED} if is_shipped else {}),
                "template": {"spec": {"containers": [{"name": "node", "image": image}], "restartPolicy": "Never"}},
            },
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            **({"runPolicy": {"failurePolicy": {"maxRestarts": MOST_RESTARTS[name]}}} if is_shipped else {}),
            "template": {"spec": {"replicatedJobs": [job], **spec}},
        },
    }


PLAIN = ("torch", "brief", "again")
"""The runtimes of every cluster: one without more, one whose JobSets go soon after they ended, one that restarts."""

FAIL_WHEN_DISRUPTED: Tree = {
    "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
"""The pod failure policy of the shipped runtimes."""

RESTART_WHEN_DISRUPTED: Tree = {
    "rules": [
        {
            "name": "disrupted",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            "onJobFailureMessagePatterns": ["has condition DisruptionTarget"],
        }
    ],
}
"""The failure policy of their JobSets: after any other failure the operator decides."""

MOST_RESTARTS = {"shipped": 10, "strict": 2}
"""Runtimes with the shipped policy, and how often the operator restarts a TrainJob of theirs after a fault."""

RUNTIME_SPECS: dict[str, Tree] = {
    "torch": {},
    "brief": {"ttlSecondsAfterFinished": 4},
    "again": {"failurePolicy": {"maxRestarts": 2}, "ttlSecondsAfterFinished": 30},
    "shipped": {"failurePolicy": RESTART_WHEN_DISRUPTED},
    "strict": {"failurePolicy": RESTART_WHEN_DISRUPTED, "ttlSecondsAfterFinished": 4},
}
"""What the JobSets of each runtime have."""


def install_runtimes(server: ApiServer, names: Iterable[str] = PLAIN) -> None:
    """Put the runtimes there, as an installation does."""
    for name in names:
        server.put(CLUSTER_TRAINING_RUNTIMES, runtime(name, f"{name}:1", **RUNTIME_SPECS[name]), "admin")


class People:
    """Does what a history says that people do."""

    def __init__(self, server: ApiServer, refused: Callable[[Key, str], None]) -> None:
        self._server = server
        self._refused = refused
        self._files: dict[str, Tree] = {}
        self._images = 1
        server.storage.listeners.append(self._read)

    def _read(self, change: Change, _: str) -> None:
        """Read the Events, and do what one advises."""
        event = change.after
        if change.collection == EVENTS and event is not None and ADVICE in event["message"]:
            about = Key(event["involvedObject"]["namespace"], snapshot_name(event["involvedObject"]["name"]))
            found = self._server.find(SNAPSHOTS, about)
            if found is not None:
                uid = found["metadata"]["uid"]
                asyncio.get_running_loop().call_later(HEEDED_SECONDS, self._remove_snapshot, about, uid)

    def _remove_snapshot(self, key: Key, uid: str) -> None:
        found = self._server.find(SNAPSHOTS, key)
        if found is not None and found["metadata"]["uid"] == uid:
            self._server.storage.writer = "user"
            self._server.storage.delete(SNAPSHOTS, key)

    async def create(self, name: str, told: Tree) -> None:
        """Create a TrainJob, and keep its file; if there is one of its name, the file of that one stays."""
        file, key = train_job(name, told), Key(NAMESPACE, name)
        refusal = await insist(self._server, "create", TRAINJOBS, key, file)
        if refusal is None:
            self._files[name] = file
        elif not isinstance(refusal, AlreadyExistsError):
            self._refused(key, str(refusal))

    async def delete(self, name: str, told: Tree) -> None:
        """Delete a TrainJob."""
        await insist(self._server, "delete", TRAINJOBS, Key(NAMESPACE, name))

    async def delete_snapshot(self, name: str, told: Tree) -> None:
        """Delete a TrainJob's snapshot."""
        await insist(self._server, "delete", SNAPSHOTS, Key(NAMESPACE, snapshot_name(name)))

    async def recreate(self, name: str, told: Tree) -> None:
        """Delete a TrainJob and create another of its name at once, with more nodes or others."""
        await self.delete(name, told)
        await self.create(name, told)

    async def reapply(self, name: str, told: Tree) -> None:
        """Send the same file again, which says nothing of Kueue; for another TrainJob of the name it is refused."""
        file = self._files.get(name)
        if file is not None and self._server.find(TRAINJOBS, Key(NAMESPACE, name)) is not None:
            spec = {key: value for key, value in file["spec"].items() if key != "suspend"} | {"runtimePatches": None}
            body = {"metadata": {"labels": file["metadata"]["labels"]}, "spec": spec}
            await insist(self._server, "patch", TRAINJOBS, Key(NAMESPACE, name), body)

    async def suspend(self, name: str, told: Tree) -> None:
        """Hold a TrainJob back that no queue has."""
        await self._hold(name, held=True)

    async def resume(self, name: str, told: Tree) -> None:
        """Let it run again."""
        await self._hold(name, held=False)

    async def _hold(self, name: str, *, held: bool) -> None:
        job = self._server.find(TRAINJOBS, Key(NAMESPACE, name))
        if job is not None and QUEUE_LABEL not in (job["metadata"].get("labels") or {}):
            await insist(self._server, "patch", TRAINJOBS, Key(NAMESPACE, name), {"spec": {"suspend": held}})

    async def mistake(self, name: str, told: Tree) -> None:
        """Ask for what cannot be; the judge sees whether any of it is stored."""
        what, key = told["mistake"], Key(NAMESPACE, name)
        plain = {"runtime": "torch", "nodes": 1, "seconds": 5, "codes": [0]}
        stored = self._server.find(TRAINJOBS, key)
        if what == "nobody trains":
            await self._try("create", Key(NAMESPACE, "bad"), train_job("bad", {**plain, "nodes": 0}))
        elif what == "no such runtime":
            await self._try("create", Key(NAMESPACE, "bad"), train_job("bad", {**plain, "runtime": "nobodys"}))
        elif stored is not None and what == "no trainer":
            await self._try("patch", key, {"spec": {"trainer": None}})
        elif stored is not None and not stored["spec"].get("suspend"):
            pods = {"template": {"spec": {"template": {"spec": {"nodeSelector": {"flavor": "mine"}}}}}}
            spec = {"template": {"spec": {"replicatedJobs": [{"name": "node", **pods}]}}}
            entry = {"manager": "example.com/me", "trainingRuntimeSpec": spec}
            patches = [*(stored["spec"].get("runtimePatches") or ()), entry]
            body = {"metadata": {"uid": stored["metadata"]["uid"]}, "spec": {"runtimePatches": patches}}
            await self._try("patch", key, body)

    async def _try(self, verb: Verb, key: Key, body: Tree) -> None:
        with contextlib.suppress(ApiError):
            await ask(self._server, "user", verb, TRAINJOBS, key, body=body)

    async def delete_jobset(self, name: str, told: Tree) -> None:
        """Delete the JobSet of a TrainJob that is held back."""
        key = Key(NAMESPACE, name)
        job, jobset = self._server.find(TRAINJOBS, key), self._server.find(JOBSETS, key)
        if job is not None and jobset is not None and job["spec"].get("suspend") and jobset["spec"].get("suspend"):
            self._server.storage.writer = "user"
            self._server.storage.delete(JOBSETS, key)

    async def label(self, name: str, told: Tree) -> None:
        """Change what nothing hangs on."""
        body = {"metadata": {"annotations": {"note": str(told.get("note", ""))}}}
        await insist(self._server, "patch", TRAINJOBS, Key(NAMESPACE, name), body)

    async def edit_runtime(self, name: str, told: Tree) -> None:
        """Give a runtime another image."""
        self._images += 1
        body = runtime(name, f"{name}:{self._images}", **RUNTIME_SPECS[name])
        await insist(self._server, "patch", RUNTIMES, Key("", name), {"spec": body["spec"]})
