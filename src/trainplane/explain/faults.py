"""Faults: how one pod ended badly, which of many faults was the first, and how to say it in a sentence.

When one node of many dies, the others die of it: their peers are gone, or they are told to stop. And clocks of nodes
differ. So the first fault is found by what it is before it is found by when it was: a cause by itself counts before
what may follow from another fault, that before what does, and that before who was merely told to stop. Time decides
among equals, in steps as wide as clocks may differ.

Everything in a fault was written by a pod or a node: it is cleaned, cut and searched for credentials here, once.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING, read_moment
from trainplane.api.trainjob import FirstFault
from trainplane.explain.catalogue import class_of
from trainplane.explain.cleaning import MOST_LINES, clean, clean_lines
from trainplane.explain.fetching import CODES, class_said, is_initializer
from trainplane.explain.logs import read_log
from trainplane.explain.pods import (
    Trouble,
    attempt_of,
    created,
    deletion_of,
    disruption_of,
    end_of,
    former_end_of,
    index_of,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.explain.logs import LogReading

MOST_SENTENCE: Final = 600
"""Letters of a sentence."""
CLOCKS: Final = timedelta(seconds=5)
"""How far the clocks of nodes are taken to differ."""

_PARTS: Final = ("cause", "unclear", "consequence", "stopped")
_NODE_PRESSURE: Final = "TerminationByKubelet"
"""The reason of DisruptionTarget for a pod that the kubelet evicts because the node is short of something; a pod that
is evicted because it exceeds its own limits has no such condition."""
_BY_POD: Final = {
    "Evicted": "Evicted",
    _NODE_PRESSURE: "Evicted",
    "NodeLost": "NodeLost",
    "NodeShutdown": "NodeShutdown",
    "Terminated": "NodeShutdown",
    "Shutdown": "NodeShutdown",
    "DeletionByTaintManager": "NodeLost",
    "DeletionByPodGC": "NodeLost",
    "DeletionByDeviceTaintManager": "NodeLost",
    "EvictionByEvictionAPI": "Drained",
    "PreemptionByScheduler": "Preempted",
    "Preempting": "Preempted",
    "DeadlineExceeded": "DeadlineExceeded",
    "Deleted": "PodDeleted",
    "UnexpectedAdmissionError": "RefusedByNode",
    "NodeAffinity": "RefusedByNode",
    "TopologyAffinityError": "RefusedByNode",
    "OutOfcpu": "RefusedByNode",
    "OutOfmemory": "RefusedByNode",
    "OutOfpods": "RefusedByNode",
}
"""By the reason of a pod's end, or of its condition DisruptionTarget."""
_BY_CODE: Final = {
    126: "WrongCommand",
    127: "WrongCommand",
    132: "WrongArchitecture",
    134: "NativeCrash",
    135: "SharedMemory",
    136: "NativeCrash",
    137: "Killed",
    139: "NativeCrash",
    143: "Terminated",
}
_SPEC_ERRORS: Final = frozenset({"WrongCommand", "WrongArguments", "MissingModule", "SourceInvalid"})
"""Classes of errors in the user's spec or image."""
_PROGRAMMING: Final = re.compile(
    r"(?:\[[\w ]{1,20}\]:\s*)?(?:NameError|UnboundLocalError|SyntaxError|IndentationError|TabError|TypeError"
    r"|AttributeError|KeyError|IndexError|ValueError|ZeroDivisionError|NotImplementedError|AssertionError"
    r"|RecursionError|ImportError|ModuleNotFoundError)\b"
)
"""Exceptions of Python that only a change of the program heals; torchrun puts the rank before them."""
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})


def fault_of(pod: Tree, lines: Sequence[str] = ()) -> FirstFault | None:
    """Return how a pod, or the present or former run of one of its containers, ended badly; None if none did.

    Args:
        pod: the pod, as the API server or anybody else wrote it.
        lines: the end of that container's log, if at hand; else what the termination message has of it counts.
    """
    end = end_of(pod) or former_end_of(pod)
    if end is None:
        return None
    disruption = disruption_of(pod)
    if disruption is not None and not _was_before(end, disruption):
        return stop_of(pod)
    place = index_of(pod)
    said = list(lines) or ((end.message or "").splitlines() if end.exit_code is not None else [])
    reading = read_log(said)
    fetched = _fetched(end)
    return FirstFault(
        cause=fetched or _cause(pod, end, reading),
        step=clean(place.replicated_job if place else "", 63),
        index=(place.completion_index or place.job_index) if place else 0,
        pod=clean(name_of(pod), 253),
        node=clean(trees.text(pod, "spec", "nodeName"), 253),
        container=clean(end.container, 63),
        reason=clean(end.reason, 128),
        exit_code=_int32(end.exit_code),
        message=clean((end.message or "").partition("\n")[0]) if fetched else _message(end, said),
        log=list(reading.lines),
        restart=attempt_of(pod),
        time=end.moment or _disrupted(pod) or (created(pod) if created(pod) != BEGINNING else None),
    )


def stop_of(pod: Tree) -> FirstFault | None:
    """Return how a pod was disrupted or deleted, whether it has ended or not; None if neither happened.

    What its containers did afterwards (an exit code, an error on SIGTERM) follows from the stop and is not in it.
    """
    stop = disruption_of(pod) or deletion_of(pod)
    if stop is None:
        return None
    place = index_of(pod)
    return FirstFault(
        cause=_BY_POD.get(stop.reason, "NodeLost"),
        step=clean(place.replicated_job if place else "", 63),
        index=(place.completion_index or place.job_index) if place else 0,
        pod=clean(name_of(pod), 253),
        node=clean(trees.text(pod, "spec", "nodeName"), 253),
        reason=clean(stop.reason, 128),
        message=clean(stop.message),
        restart=attempt_of(pod),
        time=stop.moment,
    )


def is_stop(fault: FirstFault) -> bool:
    """Return whether a fault is a pod that was drained, preempted, deleted, or lost with its node."""
    return class_of(fault.cause).disrupts or fault.reason == _NODE_PRESSURE


def is_certain_error(fault: FirstFault) -> bool:
    """Return whether a fault is certainly an error in the user's code, spec, or data source.

    A restart would meet it again. Only errors of which the kubelet, a traceback, or an initializer leaves no doubt: an
    exception that a library may raise for a network or device fault, such as RuntimeError or OSError, is not certain.
    """
    if _says_itself(fault):
        return not heals(fault)
    if fault.cause in _SPEC_ERRORS:
        return is_sure(fault)
    return fault.cause == "PythonError" and is_sure(fault) and bool(_PROGRAMMING.match(telling_line(fault)))


def kept_fault(job: Tree | None) -> FirstFault | None:
    """Return the fault that a TrainJob's status keeps, cleaned again: a worker's API server may write anything."""
    try:
        kept = msgspec.convert(trees.get(job, "status", "firstFault"), FirstFault)
    except msgspec.ValidationError:
        return None
    return msgspec.structs.replace(
        kept,
        cause=clean(kept.cause, 63),
        step=clean(kept.step, 63),
        pod=clean(kept.pod, 253),
        node=clean(kept.node, 253),
        container=clean(kept.container, 63),
        reason=clean(kept.reason, 128),
        message=clean(kept.message),
        log=clean_lines(kept.log[-MOST_LINES:]),
    )


def first(faults: Iterable[FirstFault]) -> FirstFault | None:
    """Return the fault that was the cause, of several pods' or of several times: see this module's words."""
    known = list(faults)
    real = [one for one in known if class_of(one.cause).part != "stopped"] or known
    if not real:
        return None
    last = max(one.restart for one in real)
    present = [one for one in real if one.restart == last]
    part = min(map(_part, present))
    among = [one for one in present if _part(one) == part]
    among = [one for one in among if _weight(one) >= min(0, max(map(_weight, among)))]
    begun = min(map(_moment, among))
    return min(among, key=lambda one: (_moment(one) - begun > CLOCKS, -_weight(one), _moment(one), one.step, one.index))


def sentence(fault: FirstFault) -> str:
    """Return a fault in one sentence: who, what happened with the telling line, what to do."""
    kind = class_of(fault.cause)
    where = f" on {fault.node}" if fault.node else ""
    code = f" (exit code {fault.exit_code})" if fault.exit_code is not None else ""
    quoted = telling_line(fault)
    head, tail = f"{step_of(fault)}{where} {kind.says}{code}", f". {kind.remedy[:1].upper()}{kind.remedy[1:]}."
    room = MOST_SENTENCE - len(head) - len(tail) - 2
    return f"{head}: {clean(quoted, room)}{tail}" if quoted and room > 20 else f"{head}{tail}"[:MOST_SENTENCE]


def heals(fault: FirstFault) -> bool:
    """Return whether the same may succeed when it is tried again with nothing changed."""
    return class_of(fault.cause).heals


def is_sure(fault: FirstFault, lines: Sequence[str] = ()) -> bool:
    """Return whether Kubernetes itself says what a fault was, or the program ended by what its log shows."""
    if fault.reason not in {"Error", ""} or fault.exit_code is None or _says_itself(fault):
        return True
    reading = read_log(lines or fault.log)
    return reading.sure and reading.cause == fault.cause


def step_of(fault: FirstFault) -> str:
    """Return what people call the step of a fault: `node-1`, `dataset-initializer`."""
    if not fault.step:
        return fault.pod or "a pod"
    return f"{fault.step}-{fault.index}" if fault.step == names.JOB_NODE or fault.index else fault.step


def telling_line(fault: FirstFault) -> str:
    """Return the line that tells most of a fault; empty where none does."""
    if fault.cause in {"Killed", "Terminated"}:
        return ""
    if fault.message and (fault.exit_code is None or fault.cause in _WITHOUT_LOG or fault.reason in _NOT_STARTED):
        return fault.message
    if _says_itself(fault):
        return fault.message
    return fault.log[-1].strip() if fault.log else fault.message


_WITHOUT_LOG: Final = frozenset(_BY_POD.values())
"""Classes of which the kubelet or the scheduler speaks, and the log does not."""


def _fetched(end: Trouble) -> str | None:
    """Return the class that an initializer of ours says it ended by."""
    return class_said(end.message) if is_initializer(end.container) and end.exit_code in CODES else None


def _says_itself(fault: FirstFault) -> bool:
    """Return whether a fault is what an initializer of ours said it ended by."""
    return is_initializer(fault.container) and class_said(fault.message) == fault.cause


def _cause(pod: Tree, end: Trouble, reading: LogReading) -> str:
    if end.exit_code is None:
        return _BY_POD.get(end.reason, "Unknown")
    cause = _cause_of_container(end, reading)
    place = index_of(pod)
    if place and is_initializer(place.replicated_job) and cause in {"PythonError", "ExitCode"}:
        return "InitializerFailed"
    return cause


def _cause_of_container(end: Trouble, reading: LogReading) -> str:
    known = {"OOMKilled": "OutOfMemory", "ContainerStatusUnknown": "NodeLost"}.get(end.reason)
    if known:
        return known
    if end.reason in _NOT_STARTED:
        return _start_error(end)
    code = end.exit_code or 0
    believed = reading.cause if reading.sure or code == 1 else None  # Python ends with 1 by what nobody caught
    return believed or _BY_CODE.get(code, "ExitCode")


def _start_error(end: Trouble) -> str:
    text = (end.message or "").lower()
    if "exec format" in text:
        return "WrongArchitecture"
    if "permission denied" in text:
        return "PermissionDenied"
    return "BadMount" if "mount" in text and "not a directory" in text else "WrongCommand"


def _was_before(end: Trouble, disruption: Trouble) -> bool:
    """Return whether a container ended before its pod was disrupted."""
    return end.moment is not None and disruption.moment is not None and end.moment < disruption.moment


def _message(end: Trouble, said: Sequence[str]) -> str:
    """Return what was told beside the log; a termination message that is the end of the log is not told twice."""
    message = end.message or ""
    return clean(message) if message.splitlines() != list(said) or len(said) < 2 else ""


def _disrupted(pod: Tree) -> datetime | None:
    from_api = trees.fields(pod, "status", "conditions", ("type", "DisruptionTarget")).get("lastTransitionTime")
    return read_moment(from_api)


def _int32(code: int | None) -> int | None:
    return code if code is not None and -(2**31) <= code < 2**31 else None


def _part(fault: FirstFault) -> int:
    return _PARTS.index(class_of(fault.cause).part)


def _weight(fault: FirstFault) -> int:
    """Return how much a fault tells: what nothing is known of is seldom the first."""
    return {"Killed": -2, "ExitCode": -1}.get(fault.cause, int(class_of(fault.cause).certainty == "certain"))


def _moment(fault: FirstFault) -> datetime:
    return fault.time or BEGINNING
