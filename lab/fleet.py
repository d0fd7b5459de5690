"""A fleet: a hub and worker clusters with Kueue on each, joined by MultiKueue.

Each worker is linked to the hub by a virtual cable between their networks, so a worker can be cut off as in life
(`Fleet.cut`) without touching its engines.
"""

from __future__ import annotations

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from lab import addresses, jobset, kueue
from lab.cluster import Cluster
from lab.paths import REPOSITORY
from lab.processes import run, wait_for
from lab.webhooks import documents

if TYPE_CHECKING:
    from collections.abc import Callable

_API = "kueue.x-k8s.io/v1beta2"
CHECK = "multikueue"
"""The name of the admission check, of its configuration, and of nothing else."""
_ACCOUNT = "lab-multikueue-sa"
MULTIKUEUE = {
    "gcInterval": "5s",
    "origin": "hub",
    "workerLostTimeout": "300s",
    "dispatcherName": "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
}
"""The hub's settings. A worker is lost after minutes: on two busy cores an API server may take one to come back, and
jobs that are sent elsewhere meanwhile run twice. Who wants to lose a worker makes it short (`Fleet.reconfigure`)."""


@dataclass(frozen=True)
class Fleet:
    """A hub and its workers."""

    hub: Cluster
    workers: tuple[Cluster, ...]

    @classmethod
    def up(
        cls,
        *,
        name: str = "",
        owned: bool = False,
        everyone: bool = False,
        workers: int = 2,
        frameworks: tuple[str, ...] = ("batch/job",),
        prepare: Callable[[Cluster], None] = lambda _: None,
        equip: Callable[[Cluster], None] = lambda _: None,
        **multikueue: Any,
    ) -> Fleet:
        """Start hub and workers and wait until MultiKueue says that they are connected.

        `prepare` runs on every cluster before Kueue starts there: it must bring the CRDs of `frameworks`. `equip` runs
        on every worker: nodes, for example. `everyone` is as for `Cluster.up`. `multikueue` overrides settings of the
        hub's configuration.
        """
        prefix = f"{name}-" if name else ""
        roles = ("hub", *(f"worker{number}" for number in range(1, workers + 1)))
        hub, *others = Cluster.up_together(*(f"{prefix}{role}" for role in roles), owned=owned, everyone=everyone)
        fleet = cls(hub, tuple(others))
        try:
            for worker in fleet.workers:
                fleet.connect(worker)
            fleet._install(frameworks, prepare, equip, MULTIKUEUE | multikueue)
            fleet._join()
        except BaseException:
            fleet.down()
            raise
        return fleet

    @classmethod
    def find(cls, name: str, *, workers: int = 2) -> Fleet:
        """Return the running fleet of that name."""
        prefix = f"{name}-" if name else ""
        roles = ("hub", *(f"worker{number}" for number in range(1, workers + 1)))
        hub, *others = (Cluster.find(f"{prefix}{role}") for role in roles)
        return cls(hub, tuple(others))

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """The hub, then the workers."""
        return (self.hub, *self.workers)

    def down(self) -> None:
        """End all of it."""
        for cluster in self.clusters:
            cluster.down()

    def connect(self, worker: Cluster) -> None:
        """Lay the cable between hub and worker; answers find their way back to the hub's pods too."""
        here, there = addresses.link(worker.index)
        ends = f"type veth peer name hub netns {worker.sandbox.holder.pid}"
        route = f"ip route add {addresses.node(worker.index)}/32 via {there}"
        name = self._cable(worker)
        script = f"ip link add {name} {ends}; ip addr add {here}/30 dev {name}; ip link set {name} up"
        run(["nsenter", f"--target={self.hub.sandbox.holder.pid}", "--net", "--", "sh", "-euc", script])
        back = f"ip route add {addresses.pods(self.hub.index)} via {here}"
        worker.sandbox.run(["sh", "-euc", f"ip addr add {there}/30 dev hub; ip link set hub up; {back}"])
        self.hub.sandbox.run(["sh", "-euc", route])

    def cut(self, worker: Cluster) -> None:
        """Take the cable's hub end down: packets vanish, as when a network fails."""
        self.hub.sandbox.run(["ip", "link", "set", self._cable(worker), "down"])

    def mend(self, worker: Cluster) -> None:
        """Bring the cable back."""
        _, there = addresses.link(worker.index)
        name = self._cable(worker)
        route = f"ip route replace {addresses.node(worker.index)}/32 via {there}"
        self.hub.sandbox.run(["sh", "-euc", f"ip link set {name} up; {route}"])

    @staticmethod
    def _cable(worker: Cluster) -> str:
        return f"worker{worker.index}"

    def reconfigure(self, cluster: Cluster, *, connected: bool = True, **settings: Any) -> dict[str, Any]:
        """Start a cluster's Kueue anew with other settings, top-level keys each; return those that they replaced.

        None removes a key, so what was returned puts everything back. `connected` is as for `restart`.
        """
        config = cluster.folder / "kueue.yaml"
        before = yaml.safe_load(config.read_text())
        after = {key: value for key, value in (before | settings).items() if value is not None}
        config.write_text(yaml.safe_dump(after))
        self.restart(cluster, connected=connected)
        return {key: before.get(key) for key in settings}

    def restart(self, cluster: Cluster, *, connected: bool = True) -> None:
        """Kill a cluster's Kueue, start it again and wait until it is ready.

        `connected`: on the hub, also wait until it reaches every worker, which it cannot while one is down.
        """
        if cluster.engines()["kueue"].process.alive():
            cluster.kill("kueue")
        connects = cluster is self.hub and connected
        if connects:
            self._forget_connections()
        cluster.revive("kueue")
        kueue.wait_ready(cluster)
        if connects:
            self.wait_connected()

    def _forget_connections(self) -> None:
        """Take away what the hub's last Kueue said of its connections: the next one's word is waited for."""
        for number in range(1, len(self.workers) + 1):
            nothing = '{"status": {"conditions": []}}'
            self.hub.kubectl(
                *("patch", "multikueuecluster", f"worker{number}"),
                *("--subresource=status", "--type=merge", f"--patch={nothing}"),
            )

    def hurry(self) -> None:
        """Let the hub's Kueue try every worker again now: after failures it waits longer each time, up to minutes.

        A worker's kubeconfig that is written anew, and be it by a comment, is a reason to try. What Kueue said of its
        connections before is forgotten, for all of them are made anew.
        """
        self._forget_connections()
        for number, worker in enumerate(self.workers, start=1):
            text = f"{credential(worker)}# tried again {time.time_ns()}\n"
            self.hub.apply(_secret(f"worker{number}", text))

    def mislead(self, worker: Cluster) -> None:
        """Let the hub's Kueue look for a worker where nobody answers, until `hurry`: to it alone the worker is gone."""
        nowhere = credential(worker).replace(f":{worker.port}", ":1")
        self.hub.apply(_secret(f"worker{self.workers.index(worker) + 1}", nowhere))

    def _install(
        self,
        frameworks: tuple[str, ...],
        prepare: Callable[[Cluster], None],
        equip: Callable[[Cluster], None],
        multikueue: dict[str, Any],
    ) -> None:
        def prepare_one(cluster: Cluster) -> None:
            if cluster is self.hub:
                jobset.install_crd(cluster)
            else:
                jobset.install(cluster)
                equip(cluster)
            prepare(cluster)
            extra = {"multiKueue": multikueue} if cluster is self.hub else {}
            kueue.install(cluster, frameworks=frameworks, **extra)

        with ThreadPoolExecutor(len(self.clusters)) as pool:
            list(pool.map(prepare_one, self.clusters))

    def _join(self) -> None:
        """Give the hub the workers' kubeconfigs and wait until it reaches them all."""
        objects: list[dict[str, Any]] = []
        for number, worker in enumerate(self.workers, start=1):
            source = {"kubeConfig": {"locationType": "Secret", "location": f"worker{number}"}}
            objects.append(_secret(f"worker{number}", credential(worker)))
            objects.append(_object("MultiKueueCluster", f"worker{number}", {"clusterSource": source}))
        names = [f"worker{number}" for number in range(1, len(self.workers) + 1)]
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": CHECK}
        check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        objects.append(_object("MultiKueueConfig", CHECK, {"clusters": names}))
        objects.append(_object("AdmissionCheck", CHECK, check))
        self.hub.apply(*objects)
        self.wait_connected()

    def wait_connected(self, seconds: float = 90) -> float:
        """Wait until the hub reaches every worker."""

        def active() -> bool:
            items = self.hub.get("multikueueclusters")["items"]
            conditions = [c for item in items for c in item.get("status", {}).get("conditions", [])]
            states = [c["status"] for c in conditions if c["type"] == "Active"]
            return len(states) == len(self.workers) and set(states) == {"True"}

        return wait_for("MultiKueue", active, seconds=seconds, log=self.hub.log("kueue"))


def credential(worker: Cluster) -> str:
    """Return the kubeconfig by which the hub's Kueue and the hub view reach a worker: no administrator's; made once.

    It has the rights that docs/multikueue.md and docs/hub.md give to one user, and a token that does not end.
    """
    path = worker.folder / "multikueue.kubeconfig"
    if not path.exists():
        worker.apply(*rights(), _token())
        place = ("secret", _ACCOUNT, "-n", kueue.NAMESPACE)
        wait_for("the hub's token", lambda: "token" in worker.get(*place).get("data", {}), seconds=60)
        token = base64.b64decode(worker.get(*place)["data"]["token"]).decode()
        tree = yaml.safe_load(worker.remote_kubeconfig())
        tree["users"] = [{"name": tree["users"][0]["name"], "user": {"token": token}}]
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path.read_text()


def rights() -> list[dict[str, Any]]:
    """Return what the pages apply, under names of the lab's own: tests apply the pages' too, and delete them."""
    return _own("examples/multikueue/worker-access.yaml", "manifests/hub/worker-role.yaml")


def legacy_rights() -> list[dict[str, Any]]:
    """Return what the same user needs beside it where the hub dispatches older kinds of jobs."""
    return _own("examples/legacy/multikueue-worker-access.yaml")


def _own(*files: str) -> list[dict[str, Any]]:
    found = documents(*(REPOSITORY / file for file in files))
    for tree in found:
        for named in (tree["metadata"], tree.get("roleRef", {}), *tree.get("subjects", ())):
            if named:
                named["name"] = f"lab-{named['name']}"
    return found


def _token() -> dict[str, Any]:
    owner = {"kubernetes.io/service-account.name": _ACCOUNT}
    meta = {"name": _ACCOUNT, "namespace": kueue.NAMESPACE, "annotations": owner}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": meta}


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _secret(name: str, kubeconfig: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": kueue.NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"kubeconfig": kubeconfig}}
