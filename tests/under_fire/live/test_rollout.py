"""A rolling upgrade of the operator under load: TrainJobs come all the time, and none is refused or lost.

`BEFORE=FOLDER` runs the older replica from the sources of another release; else both are this one.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
import yaml

from lab import trainplane
from lab.errors import LabError
from lab.webhooks import beside
from tests.integration.operator.test_operator import train_job, until
from tests.under_fire.live.conftest import LEASE

if TYPE_CHECKING:
    from lab.cluster import Cluster

SOURCES = Path(__file__).parents[3] / "src"
SERVICE_PORT = 9560
PORTS = {"before": (9561, 9562), "after": (9563, 9564)}
"""Where each replica answers reviews, and says whether it is ready."""
WRITERS = 6
"""Who create at once: an API server keeps a connection to webhooks for each, and each meets the one that ends."""
PAUSE = 0.2


class Load:
    """Creates TrainJobs, several at once, until it is told to stop."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.created: set[str] = set()
        self.refused: list[str] = []
        self._cluster, self._namespace = cluster, namespace
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WRITERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, writer: int) -> None:
        path = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{self._namespace}/trainjobs"
        with self._cluster.connection() as connection:
            for number in itertools.count():
                if self._stop.wait(PAUSE):
                    return
                name = f"job-{writer}-{number}"
                try:
                    connection.send("POST", path, json.dumps(train_job(self._namespace, name, suspend=True)))
                except LabError as error:
                    self.refused.append(str(error))
                else:
                    self.created.add(name)

    def await_more(self, count: int) -> None:
        """Wait until some more were sent."""
        end = self._sent + count
        until(lambda: self._sent >= end, f"{count} more TrainJobs")

    @property
    def _sent(self) -> int:
        return len(self.created) + len(self.refused)


def start(cluster: Cluster, name: str, sources: Path) -> None:
    """Start a replica beside the others, and wait until it is ready."""
    reviews, health = PORTS[name]
    settings = trainplane.configuration() | {
        "webhook": {"host": "127.0.0.1", "port": reviews},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": LEASE,
    }
    config = cluster.folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(settings))
    command = [
        *(sys.executable, "-m", "trainplane.operator"),
        f"--config={config}",
        f"--kubeconfig={trainplane.kubeconfig(cluster)}",
        f"--namespace={trainplane.NAMESPACE}",
        f"--webhook-cert-dir={cluster.folder / f'{trainplane.ENGINE}-certs'}",
    ]
    cluster.start(name, command, {"PYTHONPATH": str(sources)})
    cluster.wait_http(name, health)


def holder(cluster: Cluster) -> str:
    found: str = cluster.get("lease", "-n", trainplane.NAMESPACE, "trainer.kubeflow.org")["spec"]["holderIdentity"]
    return found


@pytest.mark.finding("runtime", 7, "webhooks refused six milliseconds after SIGTERM")
def test_no_trainjob_is_refused_or_lost_in_a_rolling_upgrade(hurt: Cluster, place: str) -> None:
    hurt.kill(trainplane.ENGINE)
    start(hurt, "before", Path(os.environ.get("BEFORE", SOURCES)))
    script = Path(__file__).with_name("service.py")
    pods = [f"{reviews}:{health}" for reviews, health in PORTS.values()]
    hurt.start("service", [sys.executable, str(script), str(SERVICE_PORT), *pods])

    def point(port: int) -> None:
        hurt.apply(*beside(hurt, trainplane.webhook_configurations(), prefix=trainplane.ENGINE, port=port))

    def asked() -> bool:
        probe = json.dumps(train_job(place, "probe", suspend=True))
        return hurt.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe, check=False).code == 0

    try:
        point(SERVICE_PORT)
        first = until(lambda: holder(hurt), "a leader")
        until(asked, "reviews by way of the Service")  # the API server reads configurations a moment after they changed
        with Load(hurt, place) as load:
            load.await_more(60)
            for old, new in (("before", "after"), ("after", "before")):
                start(hurt, new, SOURCES if new == "after" else Path(os.environ.get("BEFORE", SOURCES)))
                load.await_more(60)  # by both of them
                hurt.kill(old, signal.SIGTERM)
                load.await_more(60)
        assert load.refused == []
        assert holder(hurt) != first

        def made() -> bool:
            jobsets = hurt.get("jobsets", "-n", place)["items"]
            return {one["metadata"]["name"] for one in jobsets} == load.created

        until(made, f"the JobSets of all {len(load.created)} TrainJobs")
    finally:
        for name in ("before", "after", "service"):
            if name in hurt.engines() and hurt.engines()[name].process.alive():
                hurt.kill(name)
        hurt.revive(trainplane.ENGINE)
        trainplane.wait_ready(hurt)
        point(trainplane.WEBHOOK_PORT)
