"""How one pod ended badly, and which of many faults was the first."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.client.reading.documents import ended, pod
from trainplane.api.trainjob import FirstFault
from trainplane.explain.catalogue import CLASSES
from trainplane.explain.faults import MOST_SENTENCE, fault_of, first, heals, sentence

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 8, in fit', "    row['x']", "KeyError: 'x'"]


def found(tree: Any, lines: Any = ()) -> FirstFault:
    one = fault_of(tree, lines)
    assert one is not None
    return one


def fault(cause: str, second: float = 0, index: int = 0, **others: Any) -> FirstFault:
    return FirstFault(cause=cause, step="node", index=index, time=NOON + timedelta(seconds=second), **others)


def chosen(*faults: FirstFault) -> FirstFault:
    one = first(faults)
    assert one is not None
    return one


def disrupted(reason: str) -> dict[str, Any]:
    return {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason}]}


def test_what_runs_or_ended_well_has_none() -> None:
    assert fault_of(pod()) is None
    assert fault_of(pod(0, "Succeeded")) is None
    assert first([]) is None


def test_a_traceback_names_class_place_and_line() -> None:
    tree = pod(1, "Failed", state=ended(1), spec={"nodeName": "gpu-7", "containers": [{"name": "node"}]})
    one = found(tree, ["epoch 1", *TRACEBACK])
    assert (one.cause, one.step, one.index, one.node, one.exit_code) == ("PythonError", "node", 1, "gpu-7", 1)
    assert one.log == TRACEBACK
    assert sentence(one).startswith("node-1 on gpu-7 raised a Python error (exit code 1): KeyError: 'x'. Mend the code")
    assert not heals(one)


def test_the_termination_message_stands_in_for_a_log() -> None:
    one = found(pod(0, "Failed", state=ended(1, message="\n".join(TRACEBACK))))
    assert (one.cause, one.log[-1], one.message) == ("PythonError", "KeyError: 'x'", "")


@pytest.mark.parametrize(
    ("state", "status", "cause"),
    [
        (ended(137, reason="OOMKilled"), {}, "OutOfMemory"),
        (ended(127), {}, "WrongCommand"),
        (ended(128, reason="StartError", message='exec: "trian": executable file not found'), {}, "WrongCommand"),
        (ended(128, reason="StartError", message="exec /bin/x: exec format error"), {}, "WrongArchitecture"),
        (ended(137, reason="ContainerStatusUnknown"), {}, "NodeLost"),
        (ended(139), {}, "NativeCrash"),
        (ended(143), {}, "Terminated"),
        (ended(137), {}, "Killed"),
        (ended(3), {}, "ExitCode"),
        (None, {"reason": "Evicted", "message": "The node was low on resource: memory."}, "Evicted"),
        (None, {"reason": "OutOfcpu"}, "RefusedByNode"),
        (ended(143), disrupted("PreemptionByScheduler"), "Preempted"),
        (ended(137), disrupted("DeletionByTaintManager"), "NodeLost"),
        (ended(137), disrupted("EvictionByEvictionAPI"), "Drained"),
    ],
)
def test_what_kubernetes_says(state: Any, status: Any, cause: str) -> None:
    assert found(pod(0, "Failed", state=state, status=status)).cause == cause


def test_who_was_stopped_while_it_handled_its_own_error_is_no_mere_victim() -> None:
    assert found(pod(0, "Failed", state=ended(143)), TRACEBACK).cause == "PythonError"
    assert found(pod(0, "Failed", state=ended(143)), [*TRACEBACK, *map(str, range(40))]).cause == "Terminated"


def test_an_initializer_fails_at_what_it_is_for() -> None:
    one = found(pod(role="dataset-initializer", phase="Failed", state=ended(1)), TRACEBACK)
    assert (one.cause, sentence(one).split()[0]) == ("InitializerFailed", "dataset-initializer")
    denied = ["huggingface_hub.errors.GatedRepoError: 401 Client Error."]
    one = found(pod(role="model-initializer", phase="Failed", state=ended(1)), [TRACEBACK[0], TRACEBACK[1], *denied])
    assert one.cause == "AccessDenied"


def test_a_cause_counts_before_its_consequences_whatever_the_clocks_say() -> None:
    lost = fault("PeerLost", second=-40)
    stopped = fault("Terminated", second=-60, index=2)
    assert chosen(lost, fault("PythonError", index=1), stopped).index == 1
    assert chosen(lost, fault("OutOfMemory", second=90, index=3), stopped).index == 3


def test_among_equals_the_earlier_one_counts() -> None:
    assert chosen(fault("PythonError", second=60, index=0), fault("OutOfMemory", index=1)).index == 1


def test_within_what_clocks_may_differ_the_one_that_tells_more_counts() -> None:
    assert chosen(fault("ExitCode", second=-2), fault("CollectiveTimeout", index=1)).index == 1
    assert chosen(fault("PythonError", second=1, index=1), fault("PythonError", second=2, index=0)).index == 1


def test_only_the_last_start_of_all_counts() -> None:
    old, new = fault("NodeLost", restart=0), fault("PythonError", second=90, index=1, restart=1)
    assert chosen(old, new) == new
    assert chosen(old, fault("PeerLost", second=90, restart=1)).cause == "PeerLost"


def test_who_was_told_to_stop_in_the_end_hides_nothing() -> None:
    old = fault("PythonError")
    assert chosen(old, fault("Terminated", second=90, restart=1)) == old


def test_no_credential_gets_into_a_fault() -> None:
    secret = "hf_" + "aB3" * 10
    lines = [*TRACEBACK[:3], f"ValueError: https://joe:{secret}@hub.example/x token={secret} {secret}"]
    one = found(pod(0, "Failed", state=ended(1, message=f"password: {secret}")), lines)
    assert secret not in json.dumps(msgspec.to_builtins(one)) + sentence(one)
    assert "ValueError" in sentence(one)


def test_a_fault_is_bounded_whatever_a_pod_writes() -> None:
    long = ["\x1b[31m" + "x" * 100_000, "\u202e" + "y " * 50_000] * 100
    one = found(pod(0, "Failed", state=ended(1, message="z\x00" * 100_000)), [*long, *TRACEBACK[:1], *long])
    assert len(one.log) <= 12
    assert all(len(line) <= 256 and line.isprintable() for line in one.log)
    assert len(one.message) <= 512
    assert len(sentence(one)) <= MOST_SENTENCE


def test_every_class_has_a_sentence_in_bounds() -> None:
    for name in [*CLASSES, "SomethingNewer"]:
        one = fault(name, log=["w" * 256] * 12, message="m" * 512, pod="p" * 253, node="n" * 253)
        assert 40 < len(sentence(one)) <= MOST_SENTENCE


def test_any_tree_is_read() -> None:
    random_ = random.Random(7)  # noqa: S311 no secret
    values: list[Any] = [None, True, -1, 2**70, 1.5, "", "x", "2026-11-16T12:00:00Z", [], {}, [None], {"x": None}]

    def spoil(tree: Any) -> Any:
        if random_.random() < 0.08:
            return random_.choice(values)
        if isinstance(tree, dict):
            return {key: spoil(value) for key, value in tree.items()}
        return [spoil(value) for value in tree] if isinstance(tree, list) else tree

    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": "x", "lastTransitionTime": "y"}]
    for _ in range(3000):
        tree = pod(1, "Failed", state=ended(1, message="a\nb"), last=ended(2), status={"conditions": conditions})
        one = fault_of(spoil(tree), TRACEBACK[random_.randrange(4) :])
        if one is not None:
            assert msgspec.convert(msgspec.to_builtins(one), FirstFault) == one
            assert sentence(one)


@pytest.mark.parametrize(
    ("code", "cause"),
    [(137, "Evicted"), (143, "Evicted"), (1, "ExitCode"), (None, "Evicted")],
)
def test_a_pod_that_its_kubelet_evicted_is_no_killed_container(code: int | None, cause: str) -> None:
    """Found with a real kubelet: of an emptyDir that is too full it says so in the pod's reason, in no condition."""
    evicted = pod(0, "Failed", state=ended(code) if code is not None else None)
    evicted["status"] |= {"reason": "Evicted", "message": 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". '}
    fault = fault_of(evicted)
    assert fault is not None
    assert fault.cause == cause
    if cause == "Evicted":
        assert (fault.reason, "EmptyDir" in sentence(fault)) == ("Evicted", True)
