"""Names that JobSet makes of a TrainJob's name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admission.objects import Plain, plain, replicated_job, runtime, trainjob
from trainplane.admission.lengths import judge_names
from trainplane.api.document import read
from trainplane.api.trainjob import TrainJob
from trainplane.render.errors import ResolveError
from trainplane.render.findings import Finding
from trainplane.render.pipeline import Pipeline

REAL = Pipeline.default()


def findings(name: str, known: Any = None, *, pipeline: Any = REAL, **trainer: Any) -> list[Finding]:
    job = read(trainjob(name, trainer=trainer), TrainJob)
    return list(judge_names(job, known or runtime(), pipeline))


@pytest.mark.parametrize(
    ("length", "nodes", "fits"),
    [
        (48, 1, True),  # 48 + -node-0-0-abcde
        (49, 1, False),
        (48, 10, True),
        (48, 11, False),  # the last pod has index 10
        (47, 100, True),
        (47, 101, False),
        (46, 1000, True),
        (46, 1001, False),
        (63, 1, False),
    ],
)
def test_a_pod_has_63_characters(length: int, nodes: int, fits: bool) -> None:
    assert (findings("j" * length, numNodes=nodes) == []) is fits


def test_the_sentence_says_how_long_it_may_be() -> None:
    name = "j" * 60
    (finding,) = findings(name, numNodes=12)
    assert finding == Finding(
        "metadata.name",
        f'is too long for what it becomes: pod "{name}-node-0-11-abcde" would have 76 characters, and 63 are allowed. '
        "Use a name of at most 47",
    )
    assert findings("j" * 47, numNodes=12) == []
    assert findings("j" * 48, numNodes=12) != []


def test_a_short_name_is_judged_without_rendering() -> None:
    pipeline = Plain()
    assert findings("j" * 38, pipeline=pipeline, numNodes=2**31 - 1) == []
    assert pipeline.renders == 0


def test_without_completion_indexes_only_the_job_counts() -> None:
    job = replicated_job()
    job["template"]["spec"]["completionMode"] = "NonIndexed"
    assert findings("j" * 56, runtime(job)) == []
    assert findings("j" * 57, runtime(job))[0].problem.startswith("is too long for what it becomes: Job ")


def test_every_job_counts_and_so_do_its_replicas() -> None:
    other = replicated_job("a-much-longer-name", None, replicas=11)
    (finding,) = findings("j" * 40, runtime(replicated_job(), other))
    assert "-a-much-longer-name-10-0-abcde" in finding.problem


def test_claims() -> None:
    policies = [{"templates": [{"metadata": {"name": "a-volume-of-many-words"}}]}]
    (finding,) = findings("j" * 41, runtime(volumeClaimPolicies=policies))
    assert finding.problem.startswith('is too long for what it becomes: PersistentVolumeClaim "a-volume-of-many-words-')
    assert finding.problem.endswith("Use a name of at most 40")
    assert findings("j" * 40, runtime(volumeClaimPolicies=policies)) == []


def test_a_coordinator_has_the_name_twice() -> None:
    known = runtime(coordinator={"replicatedJob": "node"})
    (finding,) = findings("j" * 40, known)
    assert finding.problem.endswith("Use a name of at most 26")
    assert findings("j" * 27, known) != []
    assert findings("j" * 26, known) == []
    assert findings("j" * 40, runtime(coordinator={"replicatedJob": "node"}, network={"subdomain": "s"})) == []


def test_a_runtime_that_leaves_no_room() -> None:
    (finding,) = findings("j", runtime(replicated_job("n" * 62)))
    assert finding.path == "spec.runtimeRef"
    assert finding.problem.startswith("names in the runtime are too long for any TrainJob: ")


@pytest.mark.parametrize("name", ["Node", "a.b", "a_b", "ü", ""])
def test_a_job_that_nothing_can_be_named_after(name: str) -> None:
    assert findings("j", runtime(replicated_job(name, None, "c")), pipeline=plain()) == [
        Finding(
            "spec.runtimeRef",
            f'the runtime\'s job "{name}" cannot be run: Jobs and pods are named after it. '
            "Its name may have small letters, digits and hyphens",
        )
    ]


def test_what_cannot_be_rendered_is_said_elsewhere() -> None:
    class Broken(Plain):
        def render(self, job: Any, runtime: Any) -> Any:
            raise ResolveError(Finding(job.view.metadata.name, runtime.view.kind))

    assert findings("j" * 63, pipeline=Broken()) == []


def test_a_name_that_is_still_to_be_generated() -> None:
    assert findings("") == []
