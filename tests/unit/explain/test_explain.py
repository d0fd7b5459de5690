"""What is the matter with a TrainJob, by all that is known of it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.client.reading.documents import condition, ended, event, pod, train_job, waiting
from trainplane.explain.explain import explain
from trainplane.explain.facts import Facts, Line
from trainplane.explain.timeline import timeline_of

FAILED = condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")
NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
GLOO = (
    "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 2000ms for recv operation to complete"
)


def facts(*pods: Any, failed: bool = False, logs: Any = None, job: Any = None, **others: Any) -> Facts:
    document = train_job(conditions=[FAILED] if failed else [], **(job or {}))
    told = {step: [Line(text) for text in lines] for step, lines in (logs or {}).items()}
    return Facts(document, pods, logs=told, **others)


def traceback(error: str) -> list[str]:
    return ["Traceback (most recent call last):", '  File "x.py", line 1, in f', error]


def test_the_first_fault_of_three_by_their_logs() -> None:
    pods = [pod(rank, "Failed", state=ended(1, second=30 - rank)) for rank in range(3)]
    lost = traceback("RuntimeError: [pair.cc:547] Connection closed by peer [10.0.0.7]:1")
    told = explain(
        facts(*pods, failed=True, logs={"node-0": traceback("KeyError: 'x'"), "node-1": lost, "node-2": lost}), NOW
    )
    assert (told.cause, told.step, told.certainty) == ("PythonError", "node-0", "certain")
    assert told.log[-1] == "KeyError: 'x'"
    assert any(one.source == "log of node-0" for one in told.evidence)


def test_two_causes_at_once_leave_it_open() -> None:
    pods = [pod(0, "Failed", state=ended(1)), pod(1, "Failed", state=ended(137, reason="OOMKilled"))]
    told = explain(facts(*pods, failed=True, logs={"node-0": traceback("KeyError: 'x'")}), NOW)
    assert told.certainty == "likely"


def test_the_one_that_did_not_wait_in_vain_stands_still() -> None:
    pods = [pod(0, "Failed", state=ended(1)), pod(1, "Failed", state=ended(1)), pod(2, "Failed", state=ended(137))]
    logs = {"node-0": traceback(GLOO), "node-1": traceback(GLOO), "node-2": ["step 12"]}
    told = explain(facts(*pods, failed=True, logs=logs), NOW)
    assert (told.cause, told.step, told.certainty) == ("Hang", "node-2", "likely")


def test_who_stood_still_is_named_also_when_its_pod_is_gone() -> None:
    two = {"spec": {"trainer": {"numNodes": 2}}}
    told = explain(facts(pod(0, "Failed", state=ended(1)), failed=True, logs={"node-0": traceback(GLOO)}, job=two), NOW)
    assert (told.cause, told.step, told.pod, told.certainty) == ("Hang", "node-1", "", "likely")


def test_all_that_waited_in_vain_is_no_hang_of_anybody() -> None:
    pods = [pod(0, "Failed", state=ended(1)), pod(1, "Failed", state=ended(1))]
    told = explain(facts(*pods, failed=True, logs={"node-0": traceback(GLOO), "node-1": traceback(GLOO)}), NOW)
    assert (told.cause, told.certainty) == ("CollectiveTimeout", "likely")


def test_more_nodes_are_waited_for_than_there_are() -> None:
    error = "torch.distributed.DistStoreError: Timed out after 3 seconds waiting for clients. 2/3 clients joined."
    pods = [pod(0, "Failed", state=ended(1)), pod(1, "Failed", state=ended(143))]
    told = explain(facts(*pods, failed=True, logs={"node-0": traceback(error)}), NOW)
    assert (told.cause, told.step) == ("WrongWorldSize", "node-0")


def test_nodes_that_were_asked_for_are_not_too_many() -> None:
    error = "torch.distributed.DistStoreError: Timed out after 3 seconds waiting for clients. 1/3 clients joined."
    three = {"spec": {"trainer": {"numNodes": 3}}}
    late = facts(pod(0, "Failed", state=ended(1)), failed=True, job=three, logs={"node-0": traceback(error)})
    assert explain(late, NOW).cause == "RendezvousTimeout"
    kept = {"cause": "RendezvousTimeout", "step": "node", "pod": "a-node-0-0-x", "exitCode": 1, "log": [error]}
    one = {**three, "spec": {"trainer": {"numNodes": 1}}}
    gone = facts(failed=True, job=one)
    gone = Facts({**gone.job, "status": {**gone.job["status"], "firstFault": kept}})
    assert (explain(gone, NOW).cause, explain(gone, NOW).step) == ("WrongWorldSize", "node-0")


def test_who_did_not_join_because_its_image_is_missing_is_the_cause() -> None:
    error = "torch.distributed.DistStoreError: Timed out after 3 seconds waiting for clients. 1/2 clients joined."
    absent = pod(1, "Pending", state=waiting("ImagePullBackOff", "Back-off pulling image"))
    told = explain(facts(pod(0, "Failed", state=ended(1)), absent, failed=True, logs={"node-0": traceback(error)}), NOW)
    assert (told.cause, told.step) == ("ImagePull", "node-1")


def test_peers_of_a_node_that_is_gone() -> None:
    lost = traceback("RuntimeError: [pair.cc:547] Connection closed by peer [10.0.0.7]:1")
    gone = pod(1, "Running", spec={"nodeName": "b"})
    ready = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    node = {"metadata": {"name": "b"}, "status": {"conditions": [ready]}}
    pods = [pod(0, "Failed", state=ended(1), spec={"nodeName": "a"}), gone]
    told = explain(facts(*pods, failed=True, logs={"node-0": lost}, nodes=[node]), NOW)
    assert (told.cause, told.step, told.node) == ("NodeLost", "node-1", "b")


def test_what_was_kept_tells_when_pods_are_gone() -> None:
    kept = {
        "cause": "OutOfMemory", "step": "node", "index": 3, "pod": "a-node-0-3-x", "node": "gpu-7",
        "reason": "OOMKilled", "exitCode": 137, "log": ["step 12"], "time": "2026-11-15T08:00:00Z",
    }  # fmt: skip
    told = explain(facts(failed=True, job={"status": {"firstFault": kept}}), NOW)
    assert (told.cause, told.step, told.node, told.certainty) == ("OutOfMemory", "node-3", "gpu-7", "certain")


def test_what_the_hub_kept_tells_when_the_worker_has_nothing_left() -> None:
    kept = {"cause": "OutOfMemory", "step": "node", "index": 3, "pod": "p", "node": "gpu-7", "reason": "OOMKilled"}
    view = {"status": {"placement": "Finished", "cluster": "w1", "firstFault": kept}}
    told = explain(facts(failed=True, job={"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, view=view), NOW)
    assert (told.cause, told.step, told.node) == ("OutOfMemory", "node-3", "gpu-7")


@pytest.mark.parametrize("kept", ["x", {"cause": 3}, {"cause": "x", "log": "y"}, {"cause": "\x1b[31m", "log": [5]}])
def test_a_kept_fault_that_is_none_is_left_out(kept: Any) -> None:
    told = explain(facts(failed=True, job={"status": {"firstFault": kept}}), NOW)
    assert (told.cause, told.certainty) == ("Unknown", "unknown")


@pytest.mark.parametrize(
    ("reason", "message", "cause"),
    [
        ("ImagePullBackOff", "Back-off pulling image", "ImagePull"),
        ("ErrImagePull", "no match for platform in manifest", "WrongArchitecture"),
        ("CreateContainerConfigError", 'secret "hub" not found', "MissingSecret"),
        ("CreateContainerConfigError", "couldn't find key token in Secret team/hub", "MissingSecret"),
        ("CreateContainerConfigError", 'configmap "settings" not found', "MissingConfigMap"),
        ("CreateContainerError", "failed to mount: not a directory", "BadMount"),
        ("RunContainerError", 'exec: "trian": executable file not found in $PATH', "WrongCommand"),
    ],
)
def test_what_a_container_waits_for(reason: str, message: str, cause: str) -> None:
    told = explain(facts(pod(0, "Pending", state=waiting(reason, message))), NOW)
    assert (told.state, told.cause, told.step, told.reason) == ("Starting", cause, "node-0", reason)


@pytest.mark.parametrize(
    ("kind", "reason", "message", "cause"),
    [
        ("Job", "FailedCreate", 'pods "x" is forbidden: exceeded quota: slots', "QuotaExceeded"),
        ("Job", "FailedCreate", 'pods "x" is forbidden: violates PodSecurity "restricted:latest"', "AdmissionDenied"),
        ("Job", "FailedCreate", 'Internal error: failed calling webhook "x": connection refused', "WebhookDown"),
        ("Job", "FailedCreate", 'failed calling webhook "x": tls: certificate has expired', "CertificateExpired"),
        ("TrainJob", "TrainJobResourcesCreationFailed", "name taken", "CreationFailed"),
    ],
)
def test_why_pods_are_not_made(kind: str, reason: str, message: str, cause: str) -> None:
    told = explain(
        facts(events=[event(kind, "a-node-0" if kind == "Job" else "a", reason, message, type="Warning")]), NOW
    )
    assert (told.state, told.cause) == ("Starting", cause)


def test_a_mount_that_fails_is_told_by_its_event() -> None:
    waits = pod(0, "Pending")
    name = waits["metadata"]["name"]
    failed = event("Pod", name, "FailedMount", 'MountVolume.SetUp failed for volume "data"', type="Warning")
    assert explain(facts(waits, events=[failed]), NOW).cause == "BadMount"
    assert explain(facts(pod(0), events=[failed]), NOW).cause == "", "it runs now: that was got over"


def test_held() -> None:
    suspended = {"spec": {"suspend": True}}
    assert explain(facts(job=suspended), NOW).cause == "Suspended"
    queued = {**suspended, "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gold"}}}
    assert explain(facts(job=queued), NOW).cause == "Queued"
    answer = {"causes": [{"code": "LocalQueueMissing", "what": "there is no LocalQueue gold", "blocks": True}]}
    assert explain(facts(job=queued, queue=answer), NOW).cause == "QueueMissing"
    preempted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "by a higher priority"}
    told = explain(facts(job=queued, workload={"status": {"conditions": [preempted]}}), NOW)
    assert (told.state, told.cause) == ("Held", "PreemptedByKueue")


def test_a_runtime_that_differs_on_a_worker() -> None:
    """In Kueue 0.19's words; its Workload says no more of it once the job is sent again."""
    words = 'Remote workload on worker cluster "w1" is out of sync with its user job, resetting for re-dispatch'
    waits = {"spec": {"managedBy": "kueue.x-k8s.io/multikueue", "suspend": True}}
    warned = {**event("Workload", "trainjob-a-1", "MultiKueue", words), "type": "Warning"}
    told = explain(facts(job=waits, events=[warned]), NOW)
    assert (told.state, told.cause, told.certainty, "w1" in told.summary) == ("Held", "RuntimeDiffers", "likely", True)
    checks = {"status": {"admissionChecks": [{"name": "multikueue", "state": "Retry", "message": words}]}}
    assert explain(facts(job=waits, workload=checks), NOW).cause == "RuntimeDiffers"
    later = {**event("Workload", "trainjob-a-1", "Pending", "no quota"), "type": "Warning"}
    assert explain(facts(job=waits, events=[warned, later]), NOW).cause != "RuntimeDiffers"


def test_a_worker_that_the_hub_cannot_reach() -> None:
    view = {"status": {"placement": "Placed", "cluster": "w1", "problem": "w1 does not answer: connection refused"}}
    told = explain(facts(pod(0), job={"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, view=view), NOW)
    assert (told.cause, told.certainty, "does not answer" in told.summary) == ("WorkerLost", "likely", True)


def test_a_start_that_takes_long_names_its_stage() -> None:
    late = pod(0, "Pending", spec={"nodeName": "a"})
    pulling = event("Pod", late["metadata"]["name"], "Pulling", "pulling image")
    told = explain(facts(late, events=[pulling]), NOW)
    assert (told.cause, "being pulled" in told.summary) == ("SlowStart", True)
    early = datetime.fromisoformat(late["metadata"]["creationTimestamp"]) + timedelta(seconds=5)
    assert (explain(facts(late, events=[pulling]), early).cause, explain(facts(pod(0)), NOW).cause) == ("", "")


def spoken(step: int, *, last: datetime, every: float = 1.0) -> list[Line]:
    return [Line(f"step {step - back}", last - timedelta(seconds=back * every)) for back in range(20, -1, -1)]


def test_a_silence_is_judged_by_the_jobs_own_pace() -> None:
    told = {
        "node-0": spoken(90, last=NOW - timedelta(minutes=5)),
        "node-1": spoken(90, last=NOW - timedelta(minutes=5)),
    }
    still = Facts(train_job(), [pod(0), pod(1)], logs=told)
    assert (explain(still, NOW).cause, explain(still, NOW).step) == ("Hang", "")
    slow = {step: spoken(90, last=NOW - timedelta(minutes=5), every=60.0) for step in told}
    assert explain(Facts(train_job(), [pod(0), pod(1)], logs=slow), NOW).cause == ""
    told["node-1"] = spoken(60, last=NOW - timedelta(minutes=6))
    assert explain(Facts(train_job(), [pod(0), pod(1)], logs=told), NOW).step == "node-1"


def test_a_straggler_is_behind_and_not_silent() -> None:
    logs = {f"node-{rank}": spoken(500, last=NOW) for rank in range(3)} | {"node-3": spoken(300, last=NOW)}
    told = explain(Facts(train_job(), [pod(rank) for rank in range(4)], logs=logs), NOW)
    assert (told.cause, told.step) == ("Straggler", "node-3")


def test_nothing_is_wrong_with_what_runs_or_is_complete() -> None:
    assert explain(facts(pod(0)), NOW).cause == ""
    assert explain(Facts(train_job(conditions=[condition("Complete")])), NOW).state == "Complete"


def test_what_was_kept_counts_before_pods_that_say_no_more_than_their_exit_code() -> None:
    kept = {
        "cause": "PeerLost",
        "step": "node",
        "index": 0,
        "pod": "a-node-0-0-abcde",
        "exitCode": 1,
        "log": ["closed"],
    }
    pods = [pod(0, "Failed", state=ended(1)), pod(1, "Failed", state=ended(1))]
    told = explain(facts(*pods, failed=True, job={"status": {"firstFault": kept}}), NOW)
    assert (told.cause, told.step, told.certainty) == ("PeerLost", "node-0", "likely")


def test_any_facts_are_explained() -> None:
    drawn = random.Random(11)  # noqa: S311 no secret
    values: list[Any] = [None, True, -1, 2**70, 1.5, "", "x", "2026-11-16T12:00:00Z", [], {}, [None], {"x": None}, [[]]]

    def spoil(tree: Any) -> Any:
        if drawn.random() < 0.06:
            return drawn.choice(values)
        if isinstance(tree, dict):
            return {key: spoil(value) for key, value in tree.items()}
        return [spoil(value) for value in tree] if isinstance(tree, list) else tree

    stages = [{"stage": "Restarted", "time": "2026-11-15T05:00:00Z", "reason": "NodeLost", "number": 1}]
    kept = {"cause": "PeerLost", "step": "node", "index": 0, "pod": "a", "exitCode": 1, "log": ["closed"]}
    pods = [
        pod(0, "Failed", state=ended(1, message="a\nb")),
        pod(1, "Pending", state=waiting("ImagePullBackOff", "no")),
        pod(2, last=ended(3), spec={"nodeName": "b"}),
    ]
    news = [event("Job", "a-node-0", "FailedCreate", "exceeded quota", type="Warning")]
    workload = {"status": {"conditions": [{"type": "Evicted", "status": "True", "reason": "Preempted"}]}}
    node = {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    def objects(trees: list[Any]) -> list[Any]:
        return [spoilt for tree in trees if isinstance(spoilt := spoil(tree), dict)]

    for number in range(3000):
        conditions = [FAILED] if number % 2 else []
        held = {"suspend": number % 3 == 0}
        job = train_job(conditions=conditions, status={"firstFault": kept, "timeline": stages}, spec=held)
        lines = {"node-0": [Line(text, NOW) for text in traceback(GLOO)], "node-2": spoken(9, last=NOW)}
        known = Facts(
            next(iter(objects([job])), job),
            objects(pods),
            objects(news),
            workload=spoil(workload),
            nodes=objects([node]),
            view=spoil({"status": {"placement": "Waiting", "problem": "x", "timeline": stages, "firstFault": kept}}),
            queue=spoil({"causes": [{"code": "NoQueue", "what": "x"}]}),
            logs=lines,
        )
        assert len(timeline_of(known)) <= 16
        told = explain(known, NOW)
        assert told.summary
        assert str(told)


@pytest.mark.parametrize(
    ("asked", "nodes", "told"),
    [
        ({"requests": {"cpu": "100"}}, [{"cpu": "8"}], "it asks for 100 cpu, and the largest node has 8"),
        ({"limits": {"nvidia.com/gpu": "8"}}, [{"cpu": "8"}, {}], "it asks for 8 nvidia.com/gpu, and no node has any"),
        ({"requests": {"cpu": "8"}}, [{"cpu": "8"}], ""),
        ({"requests": {"cpu": "8"}}, [], ""),
        ({"requests": {"cpu": "many"}, "limits": 7}, [{"cpu": []}, {"cpu": "1"}], ""),
    ],
)
def test_what_no_node_has_is_named(asked: Any, nodes: list[Any], told: str) -> None:
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    late = pod(0, "Pending", spec={"containers": [{"name": "node", "resources": asked}]})
    late["status"] = {"phase": "Pending", "conditions": [waits]}
    machines = [{"metadata": {"name": "a"}, "status": {"allocatable": one}} for one in nodes]
    found = explain(facts(late, nodes=machines), NOW)
    assert (found.cause, found.detail.partition(": ")[0] if told else "") == ("Unschedulable", told)
    assert told or found.detail == "0/1 nodes are available"


@pytest.mark.parametrize(
    ("reason", "phase", "cause"),
    [
        ("DeletionByTaintManager", "Running", "NodeLost"),
        ("DeletionByPodGC", "Pending", "NodeLost"),
        ("EvictionByEvictionAPI", "Running", ""),
        (["DeletionByPodGC"], "Running", ""),
        ("DeletionByTaintManager", "Succeeded", ""),
    ],
)
def test_a_pod_that_is_given_up_with_its_node(reason: Any, phase: str, cause: str) -> None:
    """Its kubelet tells no more: its containers run for ever, by its status."""
    lost = pod(0, phase, state={"running": {}}, spec={"nodeName": "a", "containers": [{"name": "node"}]})
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "taint on a"}
    lost["status"] |= {"conditions": [target]}
    soon = datetime.fromisoformat(lost["metadata"]["creationTimestamp"]) + timedelta(seconds=5)
    told = explain(facts(lost), soon)
    assert (told.cause, told.step if cause else "") == (cause, "node-0" if cause else "")
    if cause:
        assert (told.node, told.detail) == ("a", "taint on a")
        assert explain(facts(lost, failed=True), soon).cause == cause


def test_an_output_that_was_not_sent() -> None:
    said = "training ended well, and what it made could not be sent to s3://b/x: Denied: no. Do: allow it"
    document = train_job(conditions=[condition("Failed", "OutputNotSent", said)])
    told = explain(Facts(document, [pod(0, "Succeeded")]), NOW)
    assert (told.state, told.cause, told.certainty) == ("Failed", "OutputNotSent", "certain")
    assert "Denied: no" in told.summary
