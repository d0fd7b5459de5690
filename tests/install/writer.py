"""A user who goes on creating TrainJobs, whatever happens to the operator."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Self

import yaml

from lab.errors import LabError
from tests.install.admin import train_job

if TYPE_CHECKING:
    from lab.cluster import Cluster

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
PAUSE_SECONDS = 0.2


class Writer:
    """Creates suspended TrainJobs one after the other until the block ends."""

    def __init__(self, cluster: Cluster) -> None:
        self.written: list[str] = []
        self.refused: list[str] = []
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def _write(self) -> None:
        while not self._ended.wait(PAUSE_SECONDS):
            name = f"written-{len(self.written) + len(self.refused)}"
            tree = yaml.safe_load(train_job(name, 1))
            tree["spec"]["suspend"] = True
            try:
                with self._cluster.connection() as connection:
                    connection.send("POST", PATH, json.dumps(tree))
                self.written.append(name)
            except (OSError, LabError) as refusal:
                self.refused.append(str(refusal))
