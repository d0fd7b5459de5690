"""README's first screen: the job is admitted with the runtime that it names; the commands are the guide's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import yaml

from tests.fenced import blocks
from tests.unit.render.objects import PIPELINE, container_of, pods_of
from trainplane.admission import default_trainjob, validate_trainjob
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"


def test_the_first_job_is_admitted_and_becomes_two_pods() -> None:
    (text,) = blocks(README, "yaml")
    job = yaml.safe_load(text)
    job["metadata"] |= {"namespace": "team", "uid": "uid-1"}
    job["spec"]["runtimeRef"] |= {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
    shipped = yaml.safe_load((ROOT / "runtimes" / f"{job['spec']['runtimeRef']['name']}.yaml").read_text())
    runtime = read(shipped, ClusterTrainingRuntime)
    admitted = default_trainjob(job, None, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)).tree
    verdict = validate_trainjob(admitted, None, runtime=runtime, runtime_source="live", jobset=None, pipeline=PIPELINE)
    assert (verdict.errors, verdict.warnings) == ((), ())
    rendering = PIPELINE.render(read(admitted, TrainJob), runtime)
    assert pods_of(rendering) == (2, 2)
    assert container_of(rendering)["image"] == job["spec"]["trainer"]["image"]


def test_the_commands_are_those_of_the_guide() -> None:
    install, _ = blocks(README, "sh")
    guide = "".join(blocks(ROOT / "docs" / "install.md", "sh"))
    assert [line for line in install.splitlines() if line not in guide] == []
