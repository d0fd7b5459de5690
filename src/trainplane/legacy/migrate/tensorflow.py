"""TFJob: workers alone are the nodes of a TrainJob; with a chief, parameter servers or an evaluator, each is a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.legacy import names as old
from trainplane.legacy.migrate.nodes import take_nodes
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.legacy.migrate.roles import lift, lifted, port_of, replicated_job
from trainplane.legacy.migrate.variables import Meeting, variables_of
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.roles import Role

_TASKS: Final = {
    old.CHIEF: "chief",
    old.MASTER: "chief",
    old.PS: "ps",
    old.WORKER: "worker",
    old.EVALUATOR: "evaluator",
}
_SOLE: Final = frozenset({old.CHIEF, old.MASTER, old.EVALUATOR})


def take_tensorflow(spec: Tree, roles: list[Role], draft: Draft, *, backoff: int | None) -> None:
    """Make the jobs of the runtime; TF_CONFIG tells every task where the others are, as before.

    Raises:
        RefusedError: the number of workers may change while they train, or there are two chiefs.
    """
    if spec.get("enableDynamicWorker"):
        problem = (
            "has no counterpart: the nodes of a TrainJob are fixed, and each is told of all others. "
            "Leave it out, or keep the TFJob"
        )
        raise RefusedError([Finding("spec.enableDynamicWorker", problem)])
    if "enableDynamicWorker" in spec:
        draft.put("spec.enableDynamicWorker", "the nodes of a TrainJob are fixed anyway")
    types = {role.type for role in roles}
    if types == {old.WORKER}:
        take_nodes(roles, draft, backoff=backoff)
    else:
        _take_tasks(roles, draft, backoff)
    _take_success(spec, types, draft)


def _take_tasks(roles: list[Role], draft: Draft, backoff: int | None) -> None:
    kind = draft.kind
    leads = next((role for role in roles if role.type == old.WORKER), roles[0])
    for role in roles:
        if role.type in _SOLE and role.count != 1:
            raise RefusedError([Finding(f"{role.path}.replicas", f"must be 1: there is one {role.type.lower()}")])
        task, trains = _TASKS[role.type], role is leads
        job = replicated_job(role, task, draft, trains=trains, backoff=backoff, pods=role.count)
        draft.jobs.append(lifted(job) if trains else job)
        if role.type == old.MASTER:
            draft.note(
                role.path, "changed", "TF_CONFIG calls it chief, which TensorFlow 2 knows and master it does not"
            )
    draft.order = tuple(_TASKS[role.type] for role in roles)
    lift(leads, draft, variables_of(kind, Meeting(("",), 0, "")))
    draft.trainer.pop("image", None)
    draft.trainer["numNodes"] = leads.count
    draft.policy = {"numNodes": leads.count}
    draft.annotations[names.ANNOTATION_PORT] = str(port_of(leads, kind) or kind.port)
    draft.own = True
    text = f"a job of the runtime for each task; the TrainJob's trainer speaks of {_TASKS[leads.type]}"
    draft.note(f"spec.{kind.specs}", "changed", text)


def _take_success(spec: Tree, types: set[str], draft: Draft) -> None:
    said = spec.get("successPolicy") or old.SUCCESS_DEFAULT
    place = "spec.successPolicy"
    ends = "chief" if types & {old.CHIEF, old.MASTER} else "worker"
    if len(types) > 1:
        draft.jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [ends]}
    if ends == "worker" and said == old.SUCCESS_DEFAULT and draft.trainer["numNodes"] > 1:
        draft.note(place, "changed", "complete when every worker ended well, not worker 0 alone: as AllWorkers says")
    elif "successPolicy" in spec:
        draft.put(place)
