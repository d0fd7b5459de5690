"""Commands that look: list, get, events, logs, queue, runtimes, before a fake API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.unit.cli.served import Served
from tests.unit.client.reading.documents import NAMESPACE, condition, ended, event, pod, runtime, train_job
from trainplane.cli.errors import CommandError
from trainplane.cli.since import read_since
from trainplane.kube.resource import Key
from trainplane.kube.testing.faults import Refuse
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS, PODS, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Printed = pytest.CaptureFixture[str]
NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
QUEUED: dict[str, Any] = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpus", "team": "vision"}}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, NAMESPACE)
    served.put(TRAIN_JOBS, train_job("a", nodes=2))
    served.put(PODS, pod(0), pod(1))
    yield served
    served.close()


def jobs(printed: str) -> list[str]:
    """Return the names in a table of TrainJobs."""
    return [line.split()[0] for line in printed.splitlines()[1:]]


# -- list


def test_a_list_shows_state_nodes_and_why(served: Served, capsys: Printed) -> None:
    why = condition("Failed", "FailedJobs", "it ended badly")
    served.put(TRAIN_JOBS, train_job("b", conditions=[why], nodes=1))
    assert served.run("list") == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0].split() == ["NAME", "STATUS", "RUNTIME", "NODES", "AGE", "TOOK", "WHY"]
    assert "a     Running  torch-distributed  2/2" in printed
    assert "b     Failed" in printed
    assert "FailedJobs: it ended badly" in printed
    assert "\033" not in printed


def test_a_list_is_chosen_by_labels_and_runtime(served: Served, capsys: Printed) -> None:
    served.put(TRAIN_JOBS, train_job("b", **QUEUED))
    served.put(TRAIN_JOBS, train_job("c", spec={"runtimeRef": {"name": "jax"}}))
    assert served.run("list", "-l", "team=vision") == 0
    assert jobs(capsys.readouterr().out) == ["b"]
    assert served.run("list", "--runtime", "jax") == 0
    assert jobs(capsys.readouterr().out) == ["c"]


def test_a_list_of_all_namespaces_keeps_pods_apart(served: Served, capsys: Printed) -> None:
    served.put(TRAIN_JOBS, train_job("a", nodes=2, metadata={"namespace": "other", "uid": "another"}))
    assert served.run("list", "-A") == 0
    lines = [line.split()[:5] for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:2] == ["NAMESPACE", "NAME"]
    assert lines[1:] == [
        ["other", "a", "Created", "torch-distributed", "0/2"],
        [NAMESPACE, "a", "Running", "torch-distributed", "2/2"],
    ]


def test_a_list_asks_twice_however_many_there_are(served: Served, capsys: Printed) -> None:
    served.put(TRAIN_JOBS, *(train_job(f"job-{number}") for number in range(50)))
    served.change(served.server.requests.clear)
    assert served.run("list") == 0
    assert len(jobs(capsys.readouterr().out)) == 51
    assert len(served.server.requests) == 2


def test_a_list_for_programs_has_the_objects(served: Served, capsys: Printed) -> None:
    assert served.run("list", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], [one["kind"] for one in found["items"]]) == ("List", ["TrainJob"])
    assert served.run("list", "-o", "yaml") == 0
    assert yaml.safe_load(capsys.readouterr().out) == found
    assert served.run("list", "-o", "name") == 0
    assert capsys.readouterr().out == "trainjob.trainer.kubeflow.org/a\n"


def test_an_empty_list_says_so_beside_the_output(served: Served, capsys: Printed) -> None:
    assert served.run("list", "-n", "empty") == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "There are no such TrainJobs in namespace empty.\n")


def test_wide_shows_more(served: Served, capsys: Printed) -> None:
    assert served.run("list", "-o", "wide") == 0
    assert "2026-11-15T05:00:00Z" in capsys.readouterr().out


def test_what_a_tenant_wrote_does_not_steer_the_terminal(served: Served, capsys: Printed) -> None:
    hostile = condition("Failed", "Bad\033[2J", "\033]0;owned\a\r\nTrainJob b: Complete")
    served.put(TRAIN_JOBS, train_job("b", conditions=[hostile], metadata={"labels": {"team": "x"}}))
    served.put(EVENTS, event("TrainJob", "b", "Odd\033[31m", "\033[2Jgone\nfake line"))
    for words in (["list"], ["get", "b"], ["events", "b"], ["queue"], ["explain", "b"]):
        served.run(*words)
        printed = capsys.readouterr().out
        assert not {"\033", "\a", "\r"} & set(printed), words
        assert "\nTrainJob b: Complete" not in printed
        assert "\nfake line" not in printed


# -- get


def test_get_tells_all_of_a_job(served: Served, capsys: Printed) -> None:
    served.put(EVENTS, event("TrainJob", "a", "Created", "it was made"))
    assert served.run("get", "a") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("a  Running  ")
    for text in ("nodes     2 of 2 run", "Steps\n", "node-1  Running", "Events\n", "it was made"):
        assert text in printed


def test_get_of_a_failed_job_exits_with_one_and_shows_conditions(served: Served, capsys: Printed) -> None:
    served.put(TRAIN_JOBS, train_job("b", conditions=[condition("Failed", "Died", "it died")]))
    assert served.run("get", "b") == 1
    printed = capsys.readouterr().out
    assert "Conditions\nCONDITION  STATUS  SINCE                 REASON  MESSAGE\n" in printed
    assert "Failed     True    2026-11-15T05:00:59Z  Died    it died\n" in printed


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_get_for_programs_is_the_object(served: Served, capsys: Printed, form: str) -> None:
    assert served.run("get", "a", "-o", form) == 0
    assert yaml.safe_load(capsys.readouterr().out)["metadata"]["uid"] == "uid-a"


def test_a_job_that_is_not_there_is_one_line(served: Served, capsys: Printed) -> None:
    for name in ("get", "events", "logs", "queue"):
        assert served.run(name, "none") == 2
        assert capsys.readouterr().err == f"trainplane: there is no TrainJob none in namespace {NAMESPACE}\n"


def test_what_may_not_be_read_is_told_with_the_right_that_is_missing(served: Served, capsys: Printed) -> None:
    served.change(lambda: served.server.add_fault(Refuse(code=403, reason="Forbidden", plural="trainjobs")))
    assert served.run("list") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("trainplane: TrainJobs cannot be listed: ")
    assert printed.err.count("\n") == 1


# -- events


def test_events_in_order_and_only_warnings(served: Served, capsys: Printed) -> None:
    served.put(EVENTS, event("TrainJob", "a", "Later", second=20), event("TrainJob", "a", "Earlier", second=5))
    served.put(EVENTS, event("TrainJob", "a", "Bad", second=30, type="Warning"))
    assert served.run("events", "a", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["reason"] for one in found] == ["Earlier", "Later", "Bad"]
    assert found[0]["event_time"] == "2026-11-15T05:00:05Z"
    assert served.run("events", "a", "--warnings") == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == ["Bad"]
    assert served.run("events", "a", "-o", "name") == 2


# -- logs


def write(served: Served, index: int, *lines: tuple[int, str], run: int = 0) -> None:
    """Let a pod's container print lines, each so many seconds after NOW."""
    name = pod(index)["metadata"]["name"]

    def printed() -> None:
        log = served.server.pods.containers[Key(NAMESPACE, name), "node"]
        for second, text in lines:
            log.write((int(NOW.timestamp()) + second) * 1_000_000_000, text.encode())

    del run
    served.change(printed)


def test_logs_of_all_ranks_are_merged_and_say_whose_they_are(served: Served, capsys: Printed) -> None:
    write(served, 0, (1, "zero"), (3, "two"))
    write(served, 1, (2, "one"))
    assert served.run("logs", "a") == 0
    assert capsys.readouterr().out == "[node-0] zero\n[node-1] one\n[node-0] two\n"
    assert served.run("logs", "a", "--node", "1") == 0
    assert capsys.readouterr().out == "one\n"
    assert served.run("logs", "a", "--step", "node-0", "--node", "1", "--tail", "1") == 0
    assert capsys.readouterr().out == "[node-1] one\n[node-0] two\n"


def test_logs_since_a_moment_and_with_times(served: Served, capsys: Printed) -> None:
    write(served, 0, (1, "early"), (60, "late"))
    assert served.run("logs", "a", "--node", "0", "--since", "2026-11-16T08:00:30Z", "--timestamps") == 0
    assert capsys.readouterr().out == "2026-11-16T08:01:00.000000Z late\n"


def test_logs_of_the_run_before(served: Served, capsys: Printed) -> None:
    assert served.run("logs", "a", "--previous") == 0
    assert "No step was started again" in capsys.readouterr().err
    write(served, 0, (1, "the first run"))
    name = pod(0)["metadata"]["name"]
    served.change(served.server.pods.containers[Key(NAMESPACE, name), "node"].restart)
    served.put(PODS, pod(0, restarts=1, last=ended(1)))
    write(served, 0, (5, "the second run"))
    assert served.run("logs", "a", "--previous") == 0
    assert capsys.readouterr().out == "[node-0] the first run\n"
    assert served.run("logs", "a", "--previous", "--follow") == 2


def test_what_a_step_prints_does_not_steer_the_terminal(served: Served, capsys: Printed) -> None:
    write(served, 0, (1, "10%\r 50%\r100%"), (2, "\033[2J\033]0;owned\aboo"))
    assert served.run("logs", "a", "--node", "0") == 0
    assert capsys.readouterr().out == "100%\n\\x1b[2J\\x1b]0;owned\\x07boo\n"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30s", NOW - timedelta(seconds=30)),
        ("10m", NOW - timedelta(minutes=10)),
        ("2h", NOW - timedelta(hours=2)),
        ("1d", NOW - timedelta(days=1)),
        ("2026-11-16T07:00:00Z", NOW - timedelta(hours=1)),
        ("2026-11-16T07:00:00", NOW - timedelta(hours=1)),
    ],
)
def test_times_as_people_type_them(text: str, moment: datetime) -> None:
    assert read_since(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "10", "10w", "-5m", "999999999d", "٣m"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(CommandError, match="is no time"):
        read_since(text, NOW)


# -- queue


def test_queue_says_what_waits_and_why(served: Served, capsys: Printed) -> None:
    held: dict[str, Any] = {"spec": {"suspend": True}, **QUEUED}
    served.put(TRAIN_JOBS, train_job("b", conditions=[condition("Suspended", "Suspended", "held")], **held))
    assert served.run("queue") == 0
    assert jobs(capsys.readouterr().out) == ["b"]
    assert served.run("queue", "b") == 0
    assert "gpus" in capsys.readouterr().out
    assert served.run("queue", "a") == 0
    assert capsys.readouterr().out == "TrainJob a waits in no queue: it is Running\n"
    assert served.run("queue", "b", "-A") == 2


# -- runtimes


def test_runtimes_of_cluster_and_namespace(served: Served, capsys: Printed) -> None:
    own = runtime("mine", "TrainingRuntime")
    own["metadata"]["namespace"] = NAMESPACE
    served.put(CLUSTER_TRAINING_RUNTIMES, runtime())
    served.put(TRAINING_RUNTIMES, own)
    assert served.run("runtimes") == 0
    assert jobs(capsys.readouterr().out) == ["mine", "torch-distributed"]
    assert served.run("runtimes", "-o", "name") == 0
    assert capsys.readouterr().out.splitlines() == [
        "clustertrainingruntime.trainer.kubeflow.org/torch-distributed",
        "trainingruntime.trainer.kubeflow.org/mine",
    ]


def test_runtimes_that_may_not_be_seen_are_left_out(served: Served, capsys: Printed) -> None:
    own = runtime("mine", "TrainingRuntime")
    own["metadata"]["namespace"] = NAMESPACE
    served.put(TRAINING_RUNTIMES, own)
    refuse = Refuse(code=403, reason="Forbidden", plural="clustertrainingruntimes", times=None)
    served.change(lambda: served.server.add_fault(refuse))
    assert served.run("runtimes") == 0
    printed = capsys.readouterr()
    assert jobs(printed.out) == ["mine"]
    assert printed.err.startswith("trainplane: not all runtimes are shown: ")
    assert printed.err.count("\n") == 1
    served.change(
        lambda: served.server.add_fault(Refuse(code=403, reason="Forbidden", plural="trainingruntimes", times=None))
    )
    assert served.run("runtimes") == 2
