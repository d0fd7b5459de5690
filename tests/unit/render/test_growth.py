from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import PIPELINE, job, patch, replicated_job, runtime, torch
from trainplane.api import names
from trainplane.api.bounds import MOST_LETTERS, MOST_PODS
from trainplane.render.errors import TooLargeError
from trainplane.render.growth import MOST_COPIED, Growth
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline
from trainplane.render.resolve import resolve


def test_a_copy_shares_nothing() -> None:
    tree: Any = {"a": [{"b": "c"}], "d": 1}
    copied = Growth().copy(tree)
    assert copied == tree
    assert copied["a"] is not tree["a"]
    assert copied["a"][0] is not tree["a"][0]


@pytest.mark.parametrize(
    "tree",
    [[0] * 1000, {str(n): 0 for n in range(1000)}, ["x" * (MOST_LETTERS // 50)], {"k" * (MOST_LETTERS // 50): 0}],
)
def test_copies_come_to_an_end(tree: Any) -> None:
    growth = Growth()
    with pytest.raises(TooLargeError, match="comes to a JobSet of more than"):
        list(map(growth.copy, [tree] * MOST_COPIED))


def jobs(count: int) -> list[Any]:
    return [replicated_job(f"job-{n}", "trainer") for n in range(count)]


@pytest.mark.parametrize(
    "spec",
    [
        {"trainer": {"env": [{"name": f"A{n}"} for n in range(2000)]}},
        {"trainer": {"args": ["x" * 100_000]}},
        {"trainer": {"resourcesPerNode": {"limits": {f"r{n}": "1" for n in range(400)}}}},
    ],
)
def test_what_is_said_once_is_not_said_a_thousand_times(spec: Any) -> None:
    PIPELINE.render(job(**spec), torch(*jobs(3)))
    with pytest.raises(TooLargeError):
        PIPELINE.render(job(**spec), torch(*jobs(300)))
    verdict = PIPELINE.validate(job(**spec), None, torch(*jobs(300)))
    assert [finding.path for finding in verdict.errors] == ["spec"]


def test_older_metadata_for_all_pods_is_counted_too() -> None:
    labels = {"labels": {str(n): "x" for n in range(1000)}}
    entry = {"manager": names.PATCH_MANAGER_OLDER_FIELDS, "trainingRuntimeSpec": {"template": {"metadata": labels}}}
    PIPELINE.render(job(entry), torch(*jobs(3)))
    with pytest.raises(TooLargeError):
        PIPELINE.render(job(entry), torch(*jobs(100)))


class TestPods:
    def test_as_many_as_there_may_be(self) -> None:
        assert PIPELINE.validate(job(trainer={"numNodes": MOST_PODS}), None, torch()).allowed
        verdict = PIPELINE.validate(job(trainer={"numNodes": MOST_PODS + 1}), None, torch())
        assert [finding.path for finding in verdict.errors] == ["spec.trainer.numNodes"]
        assert f"{MOST_PODS + 1} pods" in str(verdict.errors[0])
        assert "limits.podsPerTrainJob" in str(verdict.errors[0])

    def test_the_runtimes_own_count(self) -> None:
        wide = {**replicated_job("more"), "replicas": 2**31 - 1}
        wide["template"]["spec"]["parallelism"] = 2**31 - 1
        verdict = PIPELINE.validate(job(), None, runtime(replicated_job("node", "trainer"), wide))
        assert [finding.path for finding in verdict.errors] == ["spec.runtimeRef"]
        assert "more than 1000000000000000000 pods" in str(verdict.errors[0])

    def test_an_admin_sets_the_bound(self) -> None:
        pipeline = Pipeline((plugin() for plugin in (*FRAMEWORKS, *COMMON)), most_pods=2)
        assert pipeline.validate(job(trainer={"numNodes": 2}), None, torch()).allowed
        assert not pipeline.validate(job(trainer={"numNodes": 3}), None, torch()).allowed
        with pytest.raises(TooLargeError):
            pipeline.render(job(trainer={"numNodes": 3}), torch(), begins=True)

    def test_what_has_begun_goes_on(self) -> None:
        pipeline = Pipeline((plugin() for plugin in (*FRAMEWORKS, *COMMON)), most_pods=2)
        stored = job(trainer={"numNodes": 3})
        assert pipeline.validate(job(patch(nodeSelector={"a": "b"}), trainer={"numNodes": 3}), stored, torch()).allowed
        assert len(pipeline.render(stored, torch()).objects) == 1


@pytest.mark.parametrize(("replicas", "count"), [(1, 1), (1, 10), (1, 11), (3, 101), (12, 9), (0, 5), (2, -1)])
def test_the_length_of_addresses_is_known_without_them(replicas: int, count: int) -> None:
    have = {**replicated_job("more"), "replicas": replicas}
    plan = resolve(job(), runtime(replicated_job("node", "trainer"), have))
    pods = plan.pod_set("more")
    assert pods is not None
    pods.set_pods(count)
    assert pods.endpoints_length == sum(map(len, pods.endpoints))
