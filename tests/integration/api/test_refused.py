"""The API server refuses the Jobs of a TrainJob exactly where we say so when the TrainJob is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from lab.errors import LabError
from tests.refused_cases import ALLOWED, REFUSED, Case
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline

if TYPE_CHECKING:
    from lab.cluster import Cluster

PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))


@pytest.mark.finding("semantics", 5, "pods that Kubernetes refuses passed admission")
@pytest.mark.parametrize("case", [*REFUSED, *ALLOWED], ids=str)
def test_both_say_the_same(cluster: Cluster, case: Case) -> None:
    job, runtime = read(case.job("default"), TrainJob), read(case.runtime(), ClusterTrainingRuntime)
    (made,) = PIPELINE.render(job, runtime).jobset.tree["spec"]["replicatedJobs"]
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": made["template"]["spec"]}
    with cluster.connection() as connection:
        try:
            connection.send("POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", json.dumps(body))
            refusal = ""
        except LabError as error:
            refusal = str(error)
    assert bool(refusal) == (case in REFUSED), refusal
    assert not refusal or ": 422 " in refusal
