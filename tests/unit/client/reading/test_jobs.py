from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.reading.documents import at, condition, ended, pod, runtime, train_job, waiting
from trainplane.api import tree as trees
from trainplane.client.reading.jobs import count_nodes, finished_at, read_job
from trainplane.client.reading.runtimes import read_runtime
from trainplane.client.reading.steps import read_steps
from trainplane.explain.places import name_places
from trainplane.lifecycle.conditions import conditions_of, is_finished

SUSPENDED = condition("Suspended", "Suspended")
RESUMED = condition("Suspended", "Resumed", status="False")
MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def status(job: Any, *pods: Any, view: Any = None) -> str:
    return read_job(job, pods, runtime=None, view=view).status


class TestStatus:
    def test_accepted(self) -> None:
        assert status(train_job(nodes=2)) == "Created"

    @pytest.mark.parametrize("kind", ["Complete", "Failed"])
    def test_conditions_end_it_whatever_pods_say(self, kind: str) -> None:
        job = train_job(nodes=1, conditions=[SUSPENDED, condition(kind)])
        assert status(job, pod()) == kind
        assert is_finished(conditions_of(job))
        assert finished_at(job) == datetime(2026, 11, 15, 5, 0, 59, tzinfo=UTC)

    def test_a_condition_that_is_false_says_nothing(self) -> None:
        assert status(train_job(nodes=1, conditions=[condition("Failed", status="False")]), pod()) == "Running"

    def test_all_nodes_run(self) -> None:
        job = train_job(nodes=2)
        assert status(job, pod(0), pod(1, "Pending")) == "Created"
        assert status(job, pod(0)) == "Created"
        assert status(job, pod(0), pod(1)) == "Running"
        assert status(job, pod(0, "Succeeded"), pod(1)) == "Running"
        assert status(job, pod(0), pod(1, "Failed")) == "Created"

    def test_an_initializer_that_runs_is_no_training(self) -> None:
        assert status(train_job(nodes=1), pod(role="dataset-initializer")) == "Created"
        assert status(train_job(nodes=1), pod(role="dataset-initializer"), pod()) == "Running"

    def test_a_pod_that_replaces_another_counts_in_its_place(self) -> None:
        old = pod(0, "Failed", suffix="zzzzz")
        assert status(train_job(nodes=1), pod(0, made=at(30)), old) == "Running"

    def test_suspended_by_spec_and_by_condition(self) -> None:
        assert status(train_job(nodes=1, spec={"suspend": True}), pod()) == "Suspended"
        assert status(train_job(nodes=1, conditions=[SUSPENDED])) == "Suspended"

    def test_a_resumed_job_runs(self) -> None:
        assert status(train_job(nodes=2, conditions=[RESUMED]), pod(0), pod(1)) == "Running"
        assert status(train_job(nodes=2, conditions=[RESUMED])) == "Created"

    def test_an_elastic_job_needs_its_least_nodes(self) -> None:
        env = {"PET_NNODES": "2:4"}
        pods = [pod(index, "Pending", env=env) for index in range(4)]
        assert status(train_job(), *pods) == "Created"
        pods[1], pods[3] = pod(1, env=env), pod(3, env=env)
        assert status(train_job(), *pods) == "Running"

    def test_frameworks_tell_how_many_where_nobody_else_does(self) -> None:
        env = {"PET_NNODES": "2"}
        assert status(train_job(), pod(0, env=env)) == "Created"
        assert status(train_job(), pod(0, env=env), pod(1, env=env)) == "Running"

    def test_mpi_runs_when_its_launcher_does(self) -> None:
        volumes: dict[str, Any] = {"spec": {"volumes": [{"name": "mpi-ssh-auth"}], "containers": [{"name": "node"}]}}
        jobs = [{"name": "launcher"}, {"name": "node"}]
        job = train_job(nodes=2, jobs=jobs)
        assert status(job, pod(0, **volumes), pod(1, **volumes)) == "Created"
        assert status(job, pod(0, **volumes), pod(1, **volumes), pod(role="launcher")) == "Running"

    def test_without_pods_the_counts_tell(self) -> None:
        ready = {"name": "node", "active": 1, "ready": 1}
        job = train_job(nodes=2, spec={"managedBy": MULTIKUEUE})
        for counts, expected in ((ready, "Running"), (ready | {"ready": 0}, "Created")):
            job["status"] = {"jobsStatus": [counts]}
            assert status(job) == expected

    def test_counts_of_pods_that_would_be_seen_are_older_than_their_absence(self) -> None:
        job = train_job(nodes=2)
        job["status"] = {"jobsStatus": [{"name": "node", "active": 1, "ready": 1}]}
        assert status(job) == "Created"

    @pytest.mark.parametrize(("ready", "expected"), [(0, "Created"), (1, "Created"), (2, "Running")])
    def test_without_pods_the_hub_counts_those_that_are_ready(self, ready: int, expected: str) -> None:
        job = train_job(nodes=2, spec={"managedBy": MULTIKUEUE})
        assert status(job, view={"status": {"placement": "Dispatched", "readyPods": ready}}) == expected

    @pytest.mark.parametrize(
        ("placement", "expected"), [("Waiting", "Suspended"), ("Dispatched", "Created"), (None, "Suspended")]
    )
    def test_a_dispatched_job_waits_until_a_worker_has_it(self, placement: str | None, expected: str) -> None:
        job = train_job(nodes=2, spec={"managedBy": MULTIKUEUE, "suspend": True})
        view = {"status": {"placement": placement, "cluster": ""}} if placement else None
        assert status(job, view=view) == expected


class TestNodes:
    def test_the_job_says(self) -> None:
        assert count_nodes(train_job(nodes=3), [pod()], None) == 3

    def test_pods_say_before_the_runtime(self) -> None:
        found = read_runtime(runtime(policy={"numNodes": 7}))
        assert count_nodes(train_job(), [pod(env={"PET_NNODES": "2:4"})], found) == 4
        assert count_nodes(train_job(), [], found) == 7
        assert count_nodes(train_job(), [], None) == 1
        assert count_nodes(train_job(), [pod(0), pod(1)], None) == 2


class TestSteps:
    def test_names_and_order(self) -> None:
        pods = [pod(1), pod(0), pod(role="model-initializer"), pod(10), pod(role="dataset-initializer"), pod(2)]
        names = [step.name for step in read_steps(pods)]
        assert names == ["dataset-initializer", "model-initializer", "node-0", "node-1", "node-2", "node-10"]

    def test_the_launcher_comes_first_and_nodes_after_it(self) -> None:
        pods = [pod(0), pod(1), pod(role="launcher")]
        assert [(step.name, step.pod_name) for step in read_steps(pods)] == [
            ("node-0", "a-launcher-0-0-abcde"),
            ("node-1", "a-node-0-0-abcde"),
            ("node-2", "a-node-0-1-abcde"),
        ]

    def test_nodes_have_their_names_before_the_launcher_is_there(self) -> None:
        volumes: dict[str, Any] = {"spec": {"volumes": [{"name": "mpi-ssh-auth"}], "containers": [{"name": "node"}]}}
        assert [step.name for step in read_steps([pod(**volumes)])] == ["node-1"]
        counted = train_job(jobs=[{"name": "launcher"}, {"name": "node"}])
        assert [step.name for step in read_steps([pod()], counted)] == ["node-1"]
        alone = train_job(jobs=[{"name": "node"}])
        assert [step.name for step in read_steps([pod(**volumes)], alone)] == ["node-0"]

    def test_several_jobs_of_a_role_number_their_pods_through(self) -> None:
        pods = [pod(index, job_index=number) for number in range(2) for index in range(2)]
        assert sorted(name_places(pods).values()) == ["node-0", "node-1", "node-2", "node-3"]

    def test_a_job_of_an_admins_is_a_step_too(self) -> None:
        assert [step.name for step in read_steps([pod(role="cache"), pod()])] == ["cache", "node-0"]
        several = read_steps([pod(0, role="ps"), pod(1, role="ps")])
        assert [step.name for step in several] == ["ps-0", "ps-1"]

    def test_the_newest_pod_of_a_place_counts(self) -> None:
        (step,) = read_steps([pod(0, made=at(30), suffix="aaaaa"), pod(0, "Failed", suffix="zzzzz")])
        assert (step.pod_name, step.status) == ("a-node-0-0-aaaaa", "Running")
        (step,) = read_steps([pod(0, "Failed", suffix="zzzzz"), pod(0, suffix="aaaaa")])
        assert step.status == "Running"

    def test_a_step_says_where_and_how_it_is(self) -> None:
        (step,) = read_steps(
            [
                pod(
                    state=ended(3, message="boom"),
                    phase="Failed",
                    restarts=2,
                    limits={"nvidia.com/gpu": 2},
                    env={"PET_NPROC_PER_NODE": "8"},
                    annotations={"hub.trainplane.dev/cluster": "worker1"},
                )
            ]
        )
        assert (step.exit_code, step.reason, step.message, step.restarts) == (3, "Error", "boom", 2)
        assert (step.device, step.device_count, step.cluster) == ("gpu", "8", "worker1")

    def test_a_step_that_waits_says_why(self) -> None:
        (step,) = read_steps([pod(phase="Pending", state=waiting("ImagePullBackOff", "no such image"))])
        assert (step.reason, step.message, step.exit_code) == ("ImagePullBackOff", "no such image", None)
        (step,) = read_steps([pod(phase="Pending", state=waiting("ContainerCreating"))])
        assert step.reason is None

    def test_words_for_processes_are_no_number_of_devices(self) -> None:
        (step,) = read_steps([pod(env={"PET_NPROC_PER_NODE": "gpu"}, limits={"nvidia.com/gpu": 2})])
        assert step.device_count == "2"

    def test_pods_of_others_are_no_steps(self) -> None:
        assert read_steps([{"metadata": {"name": "x", "labels": {}}}]) == []


class TestJob:
    def test_all_of_it(self) -> None:
        job = train_job(
            nodes=1,
            metadata={"labels": {"kueue.x-k8s.io/queue-name": "gold"}, "annotations": {"a": "b"}},
            status={
                "trainerStatus": {
                    "progressPercentage": 40,
                    "estimatedRemainingSeconds": 60,
                    "metrics": [{"name": "loss", "value": "0.5"}],
                    "lastUpdatedTime": "2026-11-15T05:00:30.5Z",
                }
            },
        )
        found = read_job(job, [pod()], runtime=None, view={"status": {"cluster": "worker2", "placement": "Dispatched"}})
        assert (found.name, found.namespace, found.queue, found.cluster) == ("a", "team", "gold", "worker2")
        assert found.creation_timestamp == datetime(2026, 11, 15, 5, tzinfo=UTC)
        assert found.progress is not None
        assert (found.progress.percent, found.progress.remaining_seconds) == (40, 60)
        assert found.progress.metrics == {"loss": "0.5"}
        assert found.annotations == {"a": "b"}
        assert (found.finished, found.cause) == (None, None)

    @pytest.mark.parametrize("cluster", ["", "hub"])
    def test_what_runs_here_is_on_no_worker(self, cluster: str) -> None:
        assert read_job(train_job(), [], runtime=None, view={"status": {"cluster": cluster}}).cluster is None

    def test_the_runtime_is_the_one_given(self) -> None:
        found = read_runtime(runtime("mine"))
        assert read_job(train_job(), [], runtime=found).runtime is found

    def test_a_document_of_nothing_is_read(self) -> None:
        assert read_job({}, [], runtime=None).status == "Created"


@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.lists(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]), min_size=6, max_size=6),
    st.integers(0, 4),
)
def test_running_means_that_every_place_was_started(indexes: list[int], phases: list[str], nodes: int) -> None:
    pods = [pod(index, phase) for index, phase in zip(dict.fromkeys(indexes), phases, strict=False)]
    found = read_job(train_job(nodes=nodes), pods, runtime=None)
    started = [step for step in found.steps if step.status in {"Running", "Succeeded"}]
    if found.status == "Running":
        assert len(started) == len(found.steps) >= nodes
    else:
        assert len(started) < max(nodes, len(found.steps), 1)


class TestOddDocuments:
    """What a cluster returns may have any part of any type: it is read as not there."""

    @pytest.mark.parametrize("odd", [None, 5, "x", [], {}, [None], ["x"], [{}], {"a": {}}, "9" * 5000], ids=repr)
    @pytest.mark.parametrize(
        "path",
        [
            ("metadata", "labels"),
            ("metadata", "annotations"),
            ("metadata", "creationTimestamp"),
            ("metadata", "labels", "jobset.sigs.k8s.io/job-index"),
            ("spec", "containers"),
            ("spec", "volumes"),
            ("status",),
            ("status", "containerStatuses"),
            ("status", "conditions"),
            ("status", "phase"),
        ],
        ids=".".join,
    )
    def test_a_pod(self, path: tuple[str, ...], odd: Any) -> None:
        document = trees.put(pod(), *path, value=odd)
        read_job(train_job(nodes=1), [document], runtime=None)


def test_what_a_hold_ended_has_not_failed() -> None:
    stopped = pod(0, "Failed", state=ended(143))
    held = train_job(spec={"suspend": True})
    assert read_job(held, [stopped, pod(1)], runtime=None).steps[0].name == "node-1"
    assert [step.status for step in read_job(train_job(), [stopped], runtime=None).steps] == ["Failed"]
