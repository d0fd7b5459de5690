"""Facts of a fleet in which all is well, to be spoilt one by one, and fake clusters that show the same."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tests.unit.hub.fakeworker import kubeconfig
from trainplane import resources
from trainplane.hub.check.facts import NEEDED, PERMISSIONS, ClusterFacts, Facts, Unseen, WorkerFacts
from trainplane.kube.errors import ForbiddenError, NotFoundError
from trainplane.kube.resource import Key, Resource
from trainplane.kube.testing.server import FakeServer

if TYPE_CHECKING:
    from trainplane.kube.testing.faults import Fault
    from trainplane.kube.testing.verbs import Asking

Tree = dict[str, Any]

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
NAMESPACE = "research"
QUEUE = Key(NAMESPACE, "gpu")
CONNECTED = {"type": "Active", "status": "True", "reason": "Active", "message": "Connected"}


def runtime(name: str = "torch", *, image: str = "train:1", namespace: str = "", **pod: Any) -> Tree:
    container = {"name": "node", "image": image, "command": ["train"]}
    job = {
        "name": "node",
        "replicas": 1,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [container], **pod}}},
        },
    }
    metadata = {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch", "team": "platform"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime" if namespace else "ClusterTrainingRuntime",
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {"replicatedJobs": [job]}},
        },
    }


def train_job(name: str = "tune", *, queue: str | None = "gpu", nodes: int = 2, cpu: str = "2", **spec: Any) -> Tree:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    trainer = {"numNodes": nodes, "resourcesPerNode": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": trainer, **spec},
    }


def cluster_queue(name: str = "shared", *, checks: tuple[str, ...] = (), cpu: str = "8", **spec: Any) -> Tree:
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    content: Tree = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    if checks:
        content["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return {"metadata": {"name": name}, "spec": content | spec, "status": {"conditions": [CONNECTED]}}


def local_queue(key: Key = QUEUE, *, cluster_queue: str = "shared", **spec: Any) -> Tree:
    return {
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"clusterQueue": cluster_queue, **spec},
        "status": {"conditions": [CONNECTED]},
    }


def multikueue(*workers: str) -> dict[Resource, list[Tree]]:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "mk"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    return {
        resources.ADMISSION_CHECKS: [
            {"metadata": {"name": "mk"}, "spec": check, "status": {"conditions": [CONNECTED]}},
            {"metadata": {"name": "prov"}, "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"}},
        ],
        resources.MULTIKUEUE_CONFIGS: [{"metadata": {"name": "mk"}, "spec": {"clusters": list(workers)}}],
        resources.MULTIKUEUE_CLUSTERS: [
            {
                "metadata": {"name": worker},
                "spec": {"clusterSource": {"kubeConfig": {"location": worker, "locationType": "Secret"}}},
                "status": {"conditions": [CONNECTED]},
            }
            for worker in workers
        ],
    }


def content(*, checks: tuple[str, ...] = ()) -> dict[Resource, list[Tree]]:
    """Return the objects of a cluster in which all is well; with `checks`, of the hub."""
    return {
        resources.CLUSTER_TRAINING_RUNTIMES: [runtime()],
        resources.TRAINING_RUNTIMES: [runtime("mine", namespace=NAMESPACE)],
        resources.NAMESPACES: [{"metadata": {"name": NAMESPACE, "labels": {"team": "a"}}}],
        resources.LOCAL_QUEUES: [local_queue()],
        resources.CLUSTER_QUEUES: [cluster_queue(checks=checks)],
        resources.COHORTS: [],
        resources.RESOURCE_FLAVORS: [{"metadata": {"name": "default"}}],
        resources.WORKLOAD_PRIORITY_CLASSES: [{"metadata": {"name": "high"}, "value": 10}],
        resources.PRIORITY_CLASSES: [{"metadata": {"name": "urgent"}, "value": 100}],
    }


def keyed(trees: list[Tree]) -> dict[Key, Tree]:
    return {Key(tree["metadata"].get("namespace", ""), tree["metadata"]["name"]): tree for tree in trees}


def cluster_facts(objects: dict[Resource, list[Tree]], **changes: Any) -> ClusterFacts:
    facts = ClusterFacts(
        server="https://10.0.0.1",
        version="v1.36.0",
        engines={"Kueue": "v0.19.0"},
        served={api: frozenset(plurals) for api, plurals in NEEDED.items()},
        objects={resource: keyed(trees) for resource, trees in objects.items()},
    )
    return replace(facts, **changes)


def hub_facts(*workers: str, **objects: Any) -> ClusterFacts:
    return cluster_facts({**content(checks=("mk",)), **multikueue(*(workers or ("worker1",)))}, **objects)


def worker_facts(name: str = "worker1", cluster: ClusterFacts | None = None, **changes: Any) -> WorkerFacts:
    facts = WorkerFacts(
        name=name,
        place=f"Secret kueue-system/{name}",
        active=CONNECTED,
        cluster=cluster or cluster_facts(content()),
        permissions=dict.fromkeys(PERMISSIONS, True),
    )
    return replace(facts, **changes)


def fleet_facts(*workers: WorkerFacts, hub: ClusterFacts | None = None, trainjob: Tree | None = None) -> Facts:
    workers = workers or (worker_facts(),)
    return Facts(hub or hub_facts(*(worker.name for worker in workers)), workers, trainjob, NOW)


def altered(facts: ClusterFacts, resource: Resource, *trees: Any) -> ClusterFacts:
    """Return facts with other objects of a resource, none if none is given, or with an `Unseen`."""
    objects = trees[0] if trees and isinstance(trees[0], Unseen) else keyed(list(trees))
    return replace(facts, objects={**facts.objects, resource: objects})


@dataclass
class FakeCluster(FakeServer):
    """A fake API server with discovery, schemas and access reviews; `hidden` plurals may not be read."""

    apis: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(NEEDED))
    denied: set[tuple[str, str]] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    runtime_patches: bool = True

    def fill(self, objects: dict[Resource, list[Tree]]) -> None:
        for resource, trees in objects.items():
            for tree in trees:
                self.put(resource, tree)

    def put_worker(self, name: str, worker: FakeServer, *, token: str = "t") -> None:  # noqa: S107 no secret
        data = {"kubeconfig": base64.b64encode(kubeconfig(worker.url, token).encode()).decode()}
        self.put(resources.SECRETS, {"metadata": {"name": name, "namespace": "kueue-system"}, "data": data})

    def act(self, asking: Asking, fault: Fault | None) -> Tree:
        """Answer what the check asks beside objects: schemas, discovery and access reviews."""
        path, target = asking.path, asking.target
        if path.startswith("/openapi/v3/"):
            spec: Tree = {"properties": {"runtimePatches": {}} if self.runtime_patches else {}}
            schema = {"properties": {"spec": spec}, "x-kubernetes-group-version-kind": [{"kind": "TrainJob"}]}
            return {"components": {"schemas": {"other": {}, "trainjob": schema}}}
        if path.startswith("/apis/") and path.count("/") in {2, 3}:
            return self._discover(path.removeprefix("/apis/"))
        if target is not None and target.collection.plural == "selfsubjectaccessreviews":
            asked = msgspec.json.decode(asking.body)["spec"]["resourceAttributes"]
            name = asked["resource"] + (f"/{asked['subresource']}" if asked["subresource"] else "")
            return {"status": {"allowed": (name, asked["verb"]) not in self.denied}}
        if target is not None and target.collection.plural in self.hidden:
            raise ForbiddenError(f"may not {asking.verb} {target.collection.plural}")
        return super().act(asking, fault)

    def _discover(self, api: str) -> Tree:
        group, _, version = api.partition("/")
        versions = [known.partition("/")[2] for known in self.apis if known.startswith(f"{group}/")]
        if not versions or (version and version not in versions):
            raise NotFoundError(f"{api} is not served")
        if version:
            return {"resources": [{"name": name} for name in self.apis[api]]}
        return {"versions": [{"version": each} for each in versions]}
