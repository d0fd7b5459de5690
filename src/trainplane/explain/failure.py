"""Why a TrainJob failed: the first fault of all its pods, by their states, their logs and what was kept of them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.moments import BEGINNING
from trainplane.explain.catalogue import class_of
from trainplane.explain.cleaning import MOST_LETTERS, clean
from trainplane.explain.creation import explain_creation
from trainplane.explain.explanation import Evidence
from trainplane.explain.facts import MOST_LOGS
from trainplane.explain.faults import CLOCKS, fault_of, first, is_sure, kept_fault, step_of
from trainplane.explain.phrasing import of_class, of_fault, where_of
from trainplane.explain.pods import container_of, end_of, former_end_of, index_of, name_of
from trainplane.explain.stacks import read_stand
from trainplane.explain.waiting import explain_wait

if TYPE_CHECKING:
    from trainplane.api.trainjob import FirstFault
    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts
    from trainplane.explain.trouble import Certainty

_BY_CONDITION: Final = {
    names.REASON_RUNTIME_NOT_SUPPORTED: "RuntimeMissing",
    names.REASON_SNAPSHOT_CHANGED: "RuntimeDiffers",
    names.REASON_SNAPSHOT_MISSING: "RuntimeDiffers",
    names.REASON_OVER_BUDGET: "CreationFailed",
    names.REASON_OUTPUT_NOT_SENT: "OutputNotSent",
}
_RIVAL: Final = timedelta(seconds=60)
"""Two causes so near to each other leave it open which was first."""
_SHOWN: Final = 6
"""Other faults that are named as evidence."""
_JOINED: Final = re.compile(r"(\d{1,6})/(\d{1,6}) (?:clients|workers|nodes) joined")
_LATE: Final = timedelta(seconds=2)
"""How much after a container's end its last line may be stamped."""


class Told(NamedTuple):
    """What one pod tells of its end."""

    fault: FirstFault
    step: str
    sure: bool
    """Whether Kubernetes says so, or the program ended by what its log shows."""


def explain_failure(facts: Facts, failed: Tree) -> Explanation:
    """Return why a TrainJob failed; `failed` is the condition that says it did."""
    reason, message = trees.text(failed, "reason") or names.FAILED, clean(failed.get("message"))
    known = _BY_CONDITION.get(reason)
    if known:
        return of_class("Failed", known, facts.name, detail=message, source="condition Failed", reason=reason)
    if reason == names.REASON_DEADLINE_EXCEEDED:
        return _past_deadline(facts, reason, message)
    told = faults_in(facts)
    chosen = first(one.fault for one in told)
    if chosen is not None:
        return _by_fault(facts, told, next(one for one in told if one.fault is chosen))
    created = explain_creation(facts)
    if created is not None:
        return replace(created, state="Failed")
    return of_class("Failed", "Unknown", facts.name, detail=message, source="condition Failed", reason=reason)


def faults_in(facts: Facts) -> list[Told]:
    """Return how each pod ended badly, and what was kept of the first."""
    found: dict[str, Told] = {}
    for pod in facts.pods:
        if index_of(pod) is None:
            continue
        step = facts.step_of(pod)
        lines = _lines(facts, pod, step)
        fault = fault_of(pod, lines)
        if fault is not None:
            found[fault.pod] = Told(fault, step, is_sure(fault, lines))
    kept = kept_fault(facts.job) or kept_fault(facts.view)
    if kept is None:
        return list(found.values())
    # A container of which only the exit code is known tells less than what was read of another when it ended.
    found = {
        name: one
        for name, one in found.items()
        if one.fault.log or one.fault.cause != "ExitCode" or facts.logs.get(one.step)
    }
    if kept.pod not in found or not found[kept.pod].fault.log:
        found[kept.pod] = Told(kept, step_of(kept), sure=True)
    return list(found.values())


def _lines(facts: Facts, pod: Tree, step: str) -> list[str]:
    """Return the log of a pod: of its step's lines, where another pod took its place, those up to its end."""
    told = facts.logs.get(step, ())
    end = end_of(pod) or former_end_of(pod)
    if end is None or end.moment is None or facts.steps().get(step) is pod:
        return [line.text for line in told]
    return [line.text for line in told if line.time is None or line.time <= end.moment + _LATE]


def _by_fault(facts: Facts, told: list[Told], chosen: Told) -> Explanation:
    fault = chosen.fault
    if fault.cause == "CollectiveTimeout":
        silent = _silent(facts, told)
        if silent is not None:
            return silent
    if fault.cause == "RendezvousTimeout":
        absent = _absent(facts, chosen)
        if absent is not None:
            return absent
    if fault.cause == "PeerLost":
        peer = _lost_node(facts)
        if peer is not None:
            return peer
    return of_fault(
        fault, chosen.step, _certainty(told, chosen), _evidence(facts, told, chosen), detail=_detail(facts, chosen)
    )


def _certainty(told: list[Told], chosen: Told) -> Certainty:
    kind = class_of(chosen.fault.cause)
    if kind.certainty != "certain":
        return kind.certainty
    when = chosen.fault.time or BEGINNING
    rivals = [
        one
        for one in told
        if one.fault.cause != chosen.fault.cause
        and class_of(one.fault.cause).part == "cause"
        and one.fault.restart == chosen.fault.restart
        and abs((one.fault.time or BEGINNING) - when) <= _RIVAL
    ]
    return "certain" if chosen.sure and not rivals else "likely"


def _detail(facts: Facts, chosen: Told) -> str:
    """Return what is known beyond the fault itself."""
    if chosen.fault.cause != "OutOfMemory" or chosen.fault.reason != "OOMKilled":
        return ""
    pod = next((pod for pod in facts.pods if name_of(pod) == chosen.fault.pod), None)
    limit = trees.text(container_of(pod) if pod else None, "resources", "limits", "memory")
    return f"it used more than its limit of {clean(limit, 32)} memory" if limit else ""


def _evidence(facts: Facts, told: list[Told], chosen: Told) -> tuple[Evidence, ...]:
    fault = chosen.fault
    code = f", exit code {fault.exit_code}" if fault.exit_code is not None else ""
    seen = [Evidence(f"pod {fault.pod}", f"{fault.reason}{code}{': ' if fault.message else ''}{fault.message}")]
    if fault.log:
        seen.append(Evidence(f"log of {chosen.step}", fault.log[-1].strip()))
    others = [one for one in told if one is not chosen]
    seen += [
        Evidence(f"pod {one.fault.pod}", f"{one.step} {class_of(one.fault.cause).says}, which counts less")
        for one in others[:_SHOWN]
    ]
    seen += [Evidence("not read", clean(one, MOST_LETTERS)) for one in facts.unread[:_SHOWN]]
    return tuple(seen)


# -- what points to another pod ---------------------------------------------------------------------------------------


def _silent(facts: Facts, told: list[Told]) -> Explanation | None:
    """Return the one node that the others waited for: it alone neither waited in vain nor lost a peer."""
    spoke = {one.step for one in told if class_of(one.fault.cause).part != "stopped" and one.fault.cause != "Killed"}
    silent = {step: pod for step, pod in facts.steps().items() if step not in spoke and _trains(pod)}
    silent |= {step: {} for step in _removed(facts)}
    if len(silent) > 1:
        silent = _longest_silent(facts, silent, spoke)
    if len(silent) != 1 or not spoke:
        return None
    ((step, pod),) = silent.items()
    witness = next(one for one in told if one.fault.cause == "CollectiveTimeout")
    stand = read_stand([line.text for line in facts.logs.get(step, ())])
    found = of_class(
        "Failed",
        "Hang",
        step,
        detail=f"{witness.step} and others waited for it in vain{f'; it stood in {stand}' if stand else ''}",
        reason="Hang",
        where=where_of(step, pod),
    )
    return replace(found, evidence=_evidence(facts, told, witness))


def _removed(facts: Facts) -> list[str]:
    """Return nodes of the training whose pods are gone: who stood still to the end was stopped and removed."""
    steps, wanted = facts.steps(), trees.number(facts.job, "spec", "trainer", "numNodes") or 0
    if not steps or not all(map(_trains, steps.values())):
        return []
    return [
        step for step in (f"{names.JOB_NODE}-{rank}" for rank in range(min(wanted, MOST_LOGS))) if step not in steps
    ]


def _longest_silent(facts: Facts, silent: dict[str, Tree], spoke: set[str]) -> dict[str, Tree]:
    """Return the node that printed its last line well before all others did."""
    last = {step: time for step, lines in facts.logs.items() if lines and (time := lines[-1].time)}
    if not set(silent) <= set(last):
        return silent
    ordered = sorted(silent, key=lambda step: last[step])
    others = [time for step, time in last.items() if step in spoke or step in ordered[1:]]
    if min(others) - last[ordered[0]] < CLOCKS:
        return silent
    return {ordered[0]: silent[ordered[0]]}


def _absent(facts: Facts, chosen: Told) -> Explanation | None:
    """Return why others did not join: their pods wait, or more are waited for than there are."""
    waits = explain_wait(facts)
    if waits is not None and waits.step != chosen.step:
        return replace(waits, state="Failed")
    joined = next((found for line in reversed(chosen.fault.log) if (found := _JOINED.search(line))), None)
    wanted = trees.number(facts.job, "spec", "trainer", "numNodes") or 0
    there = max(wanted, sum(_trains(pod) for pod in facts.steps().values()))  # when pods are gone, what was asked for
    if joined and there and int(joined[2]) > there and _processes(facts) == 1:
        wrong = msgspec.structs.replace(chosen.fault, cause="WrongWorldSize")
        return of_fault(wrong, chosen.step, "likely", (Evidence("TrainJob", f"it has {there} nodes"),))
    return None


def _processes(facts: Facts) -> int:
    number = trees.number(facts.job, "spec", "trainer", "numProcPerNode")
    return number or 1


def _lost_node(facts: Facts) -> Explanation | None:
    """Return the node that is not ready any more, if one of the pods was on it."""
    for step, pod in facts.steps().items():
        name = trees.text(pod, "spec", "nodeName")
        node = next((node for node in facts.nodes if name_of(node) == name), None)
        ready = trees.fields(node, "status", "conditions", ("type", "Ready"))
        if name and trees.text(ready, "status") in {"False", "Unknown"}:
            return of_class(
                "Failed",
                "NodeLost",
                step,
                detail=str(ready.get("message") or "the node is not ready"),
                source=f"node {clean(name, 253)}",
                certainty="likely",
                reason="NodeLost",
                where=where_of(step, pod),
            )
    return None


def _trains(pod: Tree) -> bool:
    place = index_of(pod)
    return place is not None and place.replicated_job == names.JOB_NODE


def _past_deadline(facts: Facts, reason: str, message: str) -> Explanation:
    before = explain_wait(facts) or explain_creation(facts)
    found = of_class("Failed", "DeadlineExceeded", facts.name, detail=message, source="condition Failed", reason=reason)
    if before is None:
        return found
    detail = f"{found.detail} (before that, {before.summary})"
    return replace(found, detail=detail, evidence=(*found.evidence, *before.evidence))
