"""Faults of the operator: of its reconcile, of what it renders and tells, and of its reviews."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from tests.simulation.history import LOST_SNAPSHOT
from tests.simulation.planting import Planted, around, clings, later, returns, same
from tests.simulation.stops import STOPS
from trainplane.admission import defaulting, edits
from trainplane.api import names
from trainplane.api.meta import is_true
from trainplane.explain import faults
from trainplane.kube.controller import DONE
from trainplane.lifecycle import deadline, events
from trainplane.lifecycle import status as lifecycle
from trainplane.operator import after as gates
from trainplane.operator import (
    apply,
    lost,
    mirrors,
    objects,
    owned,
    recovery,
    snapshot,
    status,
    trainjob,
    ttl,
    webhooks,
    witness,
)
from trainplane.operator.errors import EarlierSelfError
from trainplane.render import pipeline
from trainplane.render.findings import Verdict
from trainplane.resources import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _spec(original: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a `Pipeline.render` whose JobSet's spec is changed."""

    def render(self: Any, job: Any, *arguments: Any, **options: Any) -> Any:
        rendering = original(self, job, *arguments, **options)
        tree = rendering.objects[-1].tree
        tree["spec"] = change(tree["spec"])
        return rendering

    return render


def _one_node(spec: dict[str, Any]) -> dict[str, Any]:
    for job in spec["replicatedJobs"]:
        job["template"]["spec"] |= {"parallelism": 1, "completions": 1}
    return spec


def _completed(original: Any, job: Any, jobset: Any, now: Any) -> Any:
    """Take every end for a good one."""
    seen = original(job, jobset, now)
    conditions = [
        msgspec.structs.replace(one, type="Complete") if one.type == "Failed" else one for one in seen.conditions
    ]
    return msgspec.structs.replace(seen, conditions=conditions)


def _never_suspended(original: Any, job: Any, jobset: Any, now: Any) -> Any:
    seen = original(job, jobset, now)
    return msgspec.structs.replace(seen, conditions=[one for one in seen.conditions if one.type != "Suspended"])


def _anonymous(original: Any, job: Any, text: Any) -> Any:
    made = original(job, text)
    made["metadata"].pop("ownerReferences", None)
    return made


def _told_twice(original: Any, before: Any, after_: Any) -> Iterator[Any]:
    yield from original(before, after_)
    yield from original(before, after_)


def _causeless(original: Any, status_: Any, reason: str, message: str, now: Any) -> Any:
    return original(status_, "", "", now)


def _holds(self: Any, key: Any, job: Any, jobset: Any) -> bool:
    look = self._looks.get(key)
    return look is not None and jobset is not None and look.job_uid == job.uid


def _job_of_any(kind: Any, found: Any, job: Any, of: Any = None) -> None:
    return None


async def _deletes(original: Any, self: Any, here: Any, status_: Any) -> None:
    if here.jobset is not None:
        await self._stop(here.key, here.jobset)


def _no_way_back(original: Any, self: Any, job: Any, trouble: Exception, left: Any) -> Any:
    return DONE if isinstance(trouble, EarlierSelfError) else original(self, job, trouble, left)


def _anywhere(spec: dict[str, Any]) -> dict[str, Any]:
    for job in spec["replicatedJobs"]:
        job["template"]["spec"]["template"]["spec"].pop("nodeSelector", None)
    return spec


def _but(spec: dict[str, Any], name: str) -> dict[str, Any]:
    return {field: value for field, value in spec.items() if field != name}


def _nobodys(original: Any, self: Any, job: Any, *arguments: Any, **options: Any) -> Any:
    rendering = original(self, job, *arguments, **options)
    rendering.objects[-1].tree["metadata"].pop("ownerReferences", None)
    return rendering


async def _of_today(self: Any, meta: Any, ref: Any, digest: str) -> Any:
    return (await self._runtimes.find(ref, meta.namespace)).document


def _without(name: str) -> Callable[..., Any]:
    """Return a `merge_patch` that does not write a field."""

    def patch(original: Any, before: Any, after: Any) -> Any:
        found = original(before, after)
        if found is not None and found["status"]:
            found["status"].pop(name, None)
            if not found["status"]:
                return None
        return found

    return patch


def _since_creation(original: Any, job: Any, conditions: Any, now: Any) -> Any:
    return original(job, [one for one in conditions if one.type != "Suspended"], now)


def _even_held(original: Any, job: Any, conditions: Any, now: Any) -> Any:
    awake = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, suspend=False))
    return original(awake, conditions, now)


async def _runs_it(self: Any, key: Any, job: Any) -> Any:
    return await self._reconcile(key, self.stores.train_job(key))


async def _blind(self: Any, key: Any, job: Any, after: Any, seen: Any) -> Any:
    return after


def _changeable(original: Any, job: Any, text: Any) -> Any:
    return {**original(job, text), "immutable": False}


async def _stops_by_deletion(original: Any, self: Any, here: Any, jobset: Any, body: Any) -> None:
    if body["spec"].get("suspend") and not jobset.suspended:
        await self.writer.delete(JOB_SETS, here.key, jobset.meta.uid)
    else:
        await original(self, here, jobset, body)


async def _follows_the_first(original: Any, self: Any, here: Any) -> Any:
    """Render what was said when the JobSet was made."""
    return None if here.jobset is not None else await original(self, here)


def _all_finished(original: Any, job: Any, status_: Any, jobset: Any, seen: Any) -> Any:
    if is_true(status_.conditions, names.COMPLETE):
        status_ = msgspec.structs.replace(status_, first_fault=None)
    return original(job, status_, jobset, dataclasses.replace(seen, unfinished=()))


def _awake(original: Any, job: Any, status_: Any, jobset: Any, seen: Any) -> Any:
    """Decide as if the TrainJob had never been suspended."""
    job = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, suspend=False))
    return original(job, status_, jobset, dataclasses.replace(seen, recent=seen.pods))


def _counting(original: Any, *arguments: Any) -> Any:
    restart = original(*arguments)
    return None if restart is None else restart._replace(counts=True)


def _uncounted(original: Any, *arguments: Any) -> Any:
    restart = original(*arguments)
    return None if restart is None else restart._replace(counts=False)


def _without_limit(original: Any, job: Any, status_: Any, jobset: Any, seen: Any, _: int) -> Any:
    return original(job, status_, jobset, seen, 1_000_000)


_render = pipeline.Pipeline.render

OPERATOR = (
    # -- what under-fire found
    Planted("runtime 3: a JobSet has its TTL from the start", ttl, "held", same),
    Planted("an end that a restore undid is believed", mirrors.Mirrors, "is_over", later(True), theme="restore"),
    Planted("runtime 5: an old mirror is believed", mirrors.Mirrors, "check", later(None), theme="old mirror"),
    Planted(
        "semantics 1: a file applied again deletes Kueue's entry", defaulting, "with_entry", same, theme="reapplied"
    ),
    # -- the reconcile
    Planted("an end is no end", trainjob, "is_finished", returns(False)),
    Planted("a JobSet never goes", objects.Objects, "let_expire", later(None)),
    Planted("a failed TrainJob keeps its JobSet", trainjob.TrainJobReconciler, "_stop", later(None)),
    Planted(
        "every end deletes its JobSet",
        trainjob.TrainJobReconciler,
        "_finish",
        around(trainjob.TrainJobReconciler._finish, _deletes),
    ),
    Planted("an earlier self's objects are taken", trainjob, "check_owner", _job_of_any, theme="recreated"),
    Planted(
        "an earlier self is not waited for",
        trainjob.TrainJobReconciler,
        "_outcome",
        around(trainjob.TrainJobReconciler._outcome, _no_way_back),
        theme="recreated",
    ),
    Planted("what was settled stays so", apply.ApplyCache, "holds", _holds),
    Planted("what waits is never applied", objects.Objects, "ensure", later(None)),
    Planted("what is gone is remembered", trainjob.TrainJobReconciler, "_forget", returns(None)),
    Planted("a change of status waits for ever", trainjob.TrainJobReconciler, "_may_wait", returns(1.0)),
    Planted("nobody ever started", trainjob.TrainJobReconciler, "_reconcile", later(DONE)),
    Planted("a deadline is not kept", deadline, "seconds_left", returns(None), theme="too long"),
    Planted(
        "a resume grants no new time",
        deadline,
        "seconds_left",
        around(deadline.seconds_left, _since_creation),
        theme="too long",
    ),
    Planted(
        "time passes while it is held",
        deadline,
        "seconds_left",
        around(deadline.seconds_left, _even_held),
        theme="too long",
    ),
    Planted(
        "who is another cluster's is run here",
        trainjob.TrainJobReconciler,
        "_tell_dispatched",
        _runs_it,
        theme="dispatched",
    ),
    Planted(
        "nobody says where what is dispatched stands",
        trainjob.TrainJobReconciler,
        "_tell_dispatched",
        later(DONE),
        theme="dispatched",
    ),
    Planted("a gate opens at once", gates, "is_true", returns(True), theme="one after another"),
    Planted("a gate never opens", gates.After, "open", later(None), theme="one after another"),
    Planted("the end of the first is not noticed", gates.After, "failure", returns(""), theme="one after another"),
    Planted("what runs is never in its place", objects, "is_elsewhere", returns(True), theme="moved unseen"),
    Planted(
        "an end that nobody was told of",
        trainjob.TrainJobReconciler,
        "_tell_late",
        returns(None),
        theme="unanswered end",
    ),
    Planted(
        "a suspension deletes the JobSet",
        objects.Objects,
        "_update",
        around(objects.Objects._update, _stops_by_deletion),
    ),
    Planted(
        "a JobSet stays as it was made", objects.Objects, "ensure", around(objects.Objects.ensure, _follows_the_first)
    ),
    Planted("a testimony is waited for always", witness.Witness, "testify", later(None)),
    # -- restarts
    Planted(
        "a stopped pod counts as finished",
        recovery,
        "after_disruption",
        around(recovery.after_disruption, _all_finished),
        theme=STOPS,
    ),
    Planted("a suspension fails", recovery, "after_disruption", around(recovery.after_disruption, _awake), theme=STOPS),
    Planted(
        "disruptions count", recovery, "after_disruption", around(recovery.after_disruption, _counting), theme=STOPS
    ),
    Planted("faults do not count", recovery, "after_fault", around(recovery.after_fault, _uncounted), theme=STOPS),
    Planted("an outdated JobSet is kept", objects.Objects, "delete_outdated", later(None), theme=STOPS),
    Planted(
        "faults restart without limit",
        recovery,
        "after_fault",
        around(recovery.after_fault, _without_limit),
        theme=STOPS,
    ),
    Planted("no error is certain", faults, "is_certain_error", returns(value=False), theme=STOPS),
    Planted("a JobSet does not tell its attempt", objects, "recreate", returns(None), theme=STOPS),
    # -- what is rendered
    Planted("news of what we own is nobody's", lost.Lost, "changed", returns(None), theme=LOST_SNAPSHOT),
    Planted("a start misses nothing", owned.OwnedMirrors, "lacks", returns(False), theme=LOST_SNAPSHOT),
    Planted("a runtime of today is rendered", snapshot.Snapshots, "recorded", _of_today, theme="edited while held"),
    Planted("Kueue's placement is left out", pipeline.Pipeline, "render", _spec(_render, _anywhere)),
    Planted(
        "restarts are left out", pipeline.Pipeline, "render", _spec(_render, lambda spec: _but(spec, "failurePolicy"))
    ),
    Planted("a JobSet is nobody's", pipeline.Pipeline, "render", around(_render, _nobodys)),
    Planted("a snapshot can be changed", snapshot, "config_map", around(snapshot.config_map, _changeable)),
    Planted("a snapshot is nobody's", snapshot, "config_map", around(snapshot.config_map, _anonymous)),
    Planted("one node for all", pipeline.Pipeline, "render", _spec(_render, _one_node)),
    Planted(
        "suspend is not rendered", pipeline.Pipeline, "render", _spec(_render, lambda spec: {**spec, "suspend": False})
    ),
    Planted("all is suspended", pipeline.Pipeline, "render", _spec(_render, lambda spec: {**spec, "suspend": True})),
    # -- what is told
    Planted("every end is a good one", trainjob, "observe", around(lifecycle.observe, _completed)),
    Planted("nobody is told of a suspension", trainjob, "observe", around(lifecycle.observe, _never_suspended)),
    Planted("no status is written", status, "merge_patch", returns(None)),
    Planted("an end is told twice", events, "of_change", around(events.of_change, _told_twice)),
    Planted("no end is told", events, "of_change", returns(())),
    Planted("an end has no cause", trainjob, "fail", around(lifecycle.fail, _causeless)),
    Planted("counts are not written", status, "merge_patch", around(status.merge_patch, _without("jobsStatus"))),
    Planted("the runtime's digest is not written", status, "record", same),
    Planted("no phase is written", trainjob, "with_phase", lambda _, after, *__: after),
    Planted("a resume is told for ever", lifecycle, "_running", lambda _, conditions: conditions),
    Planted("a JobSet's end is not copied", lifecycle, "_COPIED", ()),
    Planted("what went wrong is not told", witness.Witness, "testify", _blind),
    # -- reviews
    Planted("no gate is set", defaulting, "with_gate", same, theme="one after another"),
    Planted("whatever is sent is taken", webhooks, "validate_trainjob", returns(Verdict())),
    Planted("a trainer may go", edits, "judge_fixed", returns(())),
    Planted("what runs may be patched", edits, "judge_moment", returns(())),
    Planted("a review takes no runtime for one", webhooks.Webhooks, "_live", later(None)),
    Planted("a review waits for ever", webhooks.Webhooks, "validate_train_job", clings),
)
