"""The table `What goes wrong, and how it looks` of docs/multikueue.md: every row is brought about and looked at.

All troubles are made at once, since most take Kueue a few seconds to notice; each test waits for the words of one row.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from lab.paths import REPOSITORY
from tests.fleet import objects
from tests.fleet.api import Api, RefusedError
from tests.fleet.guide.page import ANYTHING, Page, says
from tests.fleet.team import Team, make_team, remove_team, true_condition, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lab.fleet import Fleet

ROWS = Page.load(REPOSITORY / "docs/multikueue.md").table("What goes wrong, and how it looks")
_NAMESPACE = "kueue-system"
_TOO_MANY = 40
"""Nodes with a CPU and a GPU each: more GPUs than the hub has, more CPUs than a worker."""


@dataclass(frozen=True)
class Troubles:
    """A fleet in which everything is wrong that the page knows of."""

    fleet: Fleet
    usual: Team
    homeless: Team
    """Its namespace is on the hub only."""
    queueless: Team
    """Its LocalQueue is on the hub only."""
    mark: str
    """Sets apart the names of what lies outside of teams."""

    @classmethod
    def make(cls, fleet: Fleet) -> Troubles:
        """Make teams and MultiKueueClusters."""
        mark = uuid.uuid4().hex[:8]
        workers = tuple(f"worker{number}" for number in range(1, len(fleet.workers) + 1))
        quotas = {"hub": {"cpu": "100", "memory": "100Gi", "nvidia.com/gpu": "30"}} | {
            name: {"cpu": "4", "memory": "100Gi"} for name in workers
        }
        us = cls(
            fleet,
            make_team(fleet, f"usual-{mark}", quotas=quotas),
            make_team(fleet, f"homeless-{mark}", quotas=quotas, absent=workers),
            make_team(fleet, f"queueless-{mark}", quotas=quotas),
            mark,
        )
        for worker in workers:
            us.queueless.api(worker).delete("localqueues", us.queueless.namespace, objects.QUEUE)
        us._make_clusters()
        us._make_runtimes()
        us._submit()
        return us

    def remove(self) -> None:
        """Delete all of it."""
        for team in (self.usual, self.homeless, self.queueless):
            remove_team(team)
        hub = Api(self.fleet.hub)
        for kind in _KUBECONFIGS:
            hub.delete("multikueueclusters", "", self.name(kind))
            hub.delete("secrets", _NAMESPACE, self.name(kind))
        for cluster in self.fleet.clusters:
            for kind in ("hub-only", "differs"):
                Api(cluster).delete("clustertrainingruntimes", "", self.name(kind))

    def name(self, kind: str) -> str:
        """Return the name of something outside of teams."""
        return f"{kind}-{self.mark}"

    def _make_clusters(self) -> None:
        hub = Api(self.fleet.hub)
        secret = hub.get("secrets", _NAMESPACE, "worker1")
        assert secret is not None
        good = base64.b64decode(secret["data"]["kubeconfig"]).decode()
        for kind, spoil in _KUBECONFIGS.items():
            meta = {"name": self.name(kind), "namespace": _NAMESPACE}
            if kind != "absent":
                data = {"kubeconfig": spoil(good)}
                hub.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})
            source = {"kubeConfig": {"locationType": "Secret", "location": meta["name"]}}
            spec = {"clusterSource": source}
            hub.create(
                {
                    "apiVersion": objects.KUEUE,
                    "kind": "MultiKueueCluster",
                    "metadata": {"name": meta["name"]},
                    "spec": spec,
                }
            )

    def _make_runtimes(self) -> None:
        for number, cluster in enumerate(self.fleet.clusters):
            image = f"registry.invalid/train:{min(number, 1)}"
            Api(cluster).create(objects.runtime(self.name("differs"), image=image))
        Api(self.fleet.hub).create(objects.runtime(self.name("hub-only")))

    def _submit(self) -> None:
        us = self.usual
        us.submit("early", queue="later")  # a LocalQueue that is not there yet
        late = objects.local_queue(us.namespace, name="later", cluster_queue=us.namespace)
        us.api().create(late)
        us.submit("beyond-the-hub", nodes=_TOO_MANY, gpus=1)
        us.submit("beyond-a-worker", nodes=_TOO_MANY)
        self.homeless.submit("job")
        self.queueless.submit("job")
        for kind in ("hub-only", "differs"):
            wait_until(f"Kueue to know the runtime {kind}", partial(self._accepted, kind), log=self.fleet.hub)

    def _accepted(self, kind: str) -> bool:
        try:
            self.usual.submit(kind, runtime=self.name(kind))
        except RefusedError as error:
            if self.name(kind) not in error.message:
                raise
            return False
        return True

    # -- what is seen ---------------------------------------------------------------------------------------------

    def connection(self, kind: str) -> list[str]:
        """Return what a MultiKueueCluster says about itself."""
        tree = Api(self.fleet.hub).get("multikueueclusters", "", self.name(kind)) or {}
        conditions = (tree.get("status") or {}).get("conditions") or []
        return [f"{one['reason']}: {one['message']}" for one in conditions if one["status"] == "False"]

    def check(self, team: Team, job: str) -> list[str]:
        """Return what the check of a job's Workload says on the hub."""
        return [team.check(job).get("message", "")]

    def conditions(self, team: Team, job: str, on: str = "hub") -> list[str]:
        """Return what a job's Workload says on a cluster."""
        status = (team.workload(job, on=on) or {}).get("status") or {}
        return [one["message"] for one in status.get("conditions") or []]

    def events(self, team: Team, job: str) -> list[str]:
        """Return the warnings about a job's Workload on the hub."""
        workload = team.workload(job)
        found = team.events("Workload", workload["metadata"]["name"]) if workload else []
        return [one["message"] for one in found if one["type"] == "Warning"]

    def drift(self) -> list[str]:
        """Return the warnings about the job whose runtime differs.

        Kueue 0.19 says nothing if a write of its own collided just before a worker's verdict, and waits for ever. Then
        the worker's copy is taken away, and it sends another.
        """
        told = self.events(self.usual, "differs")
        if not told and self.usual.check("differs").get("state") == "Pending":
            for worker in self.usual.workers:
                copy = self.usual.workload("differs", on=worker)
                if copy and (true_condition(copy, "Finished") or {}).get("reason") == "OutOfSync":
                    self.usual.delete("differs", on=worker)
                    self.usual.api(worker).delete("workloads", self.usual.namespace, copy["metadata"]["name"])
        return told

    def log(self, team: Team, job: str) -> list[str]:
        """Return the errors about a job in the log of the hub's Kueue."""
        whole, _, _ = self.fleet.hub.log("kueue").read_text(errors="replace").rpartition("\n")
        lines = whole.splitlines()
        about = [json.loads(line) for line in lines if f'"namespace":"{team.namespace}"' in line and '"error"' in line]
        errors = [one["error"] for one in about if one.get("name", "").startswith(f"trainjob-{job}-")]
        return [line for error in errors for line in error.splitlines()]

    def refusal(self) -> list[str]:
        """Return what the API server of the hub answers to a TrainJob whose runtime is nowhere."""
        with pytest.raises(RefusedError) as refused:
            self.usual.submit("job", runtime="nowhere")
        return [json.loads(refused.value.message)["message"]]


_KUBECONFIGS: dict[str, Callable[[str], str]] = {
    "insecure": lambda text: "\n".join(
        line.replace("certificate-authority-data: ", "insecure-skip-tls-verify: true # ") for line in text.splitlines()
    ),
    "absent": lambda text: text,
    "revoked": lambda text: re.sub(r"token: .*", "token: revoked", text),
    "unreachable": lambda text: re.sub(r"https://[\d.]+:", "https://10.99.99.1:", text),
}
"""What is wrong with a kubeconfig, by what stands in its name."""

_PROVOKED: dict[tuple[str, str], Callable[[Troubles], list[str]]] = {
    ("InsecureKubeConfig", "MultiKueueCluster"): lambda us: us.connection("insecure"),
    ("BadKubeConfig", "MultiKueueCluster"): lambda us: us.connection("absent"),
    ("provide credentials", "MultiKueueCluster"): lambda us: us.connection("revoked"),
    ("dial tcp", "MultiKueueCluster"): lambda us: us.connection("unreachable"),
    ("runtime '", "answer"): lambda us: us.refusal(),
    ("not managed by Kueue", "check of the hub's Workload"): lambda us: us.check(us.usual, "early"),
    ("nvidia.com/gpu", "hub's Workload"): lambda us: us.conditions(us.usual, "beyond-the-hub"),
    ("cpu", "Workload on each worker"): lambda us: us.conditions(us.usual, "beyond-a-worker", on="worker1"),
    ("LocalQueue", "worker's Workload"): lambda us: us.conditions(us.queueless, "job", on="worker2"),
    ("namespaces", "log of the hub's Kueue"): lambda us: us.log(us.homeless, "job"),
    ("runtime '", "log of the hub's Kueue"): lambda us: us.log(us.usual, "hub-only"),
    ("out of sync", "event of the hub's Workload"): lambda us: us.drift(),
}
"""Words of a row's first cell and the beginning of its second → where they are found in this fleet."""


@pytest.fixture(scope="module")
def troubles(fleet: Fleet) -> Iterator[Troubles]:
    made = Troubles.make(fleet)
    yield made
    made.remove()


@pytest.mark.parametrize("row", ROWS, ids=[row[0][:50] for row in ROWS])
def test_what_goes_wrong_looks_as_the_page_says(troubles: Troubles, row: tuple[str, ...]) -> None:
    symptom, place = row[:2]
    (looks,) = [look for (words, where), look in _PROVOKED.items() if words in symptom and place.startswith(where)]
    wordings = re.findall("`(.+?)`", symptom)
    seen: list[str] = []

    def shows() -> bool:
        seen[:] = looks(troubles)
        return any(says(f"{ANYTHING}{wording}{ANYTHING}", text) for text in seen for wording in wordings)

    try:
        wait_until(symptom, shows)
    except AssertionError as error:
        error.add_note(f"the fleet says {seen}")
        raise


def test_every_trouble_here_is_on_the_page() -> None:
    assert len(ROWS) == len(_PROVOKED)


def test_jobs_in_trouble_run_nowhere(troubles: Troubles) -> None:
    for team in (troubles.usual, troubles.homeless, troubles.queueless):
        for cluster in ("hub", *team.workers):
            assert team.api(cluster).list("pods", team.namespace) == []
