"""PyTorchJob, XGBoostJob, PaddleJob and JAXJob: pods that train together, as one job of a runtime or as two.

Where all pods are made alike they are the nodes of a TrainJob, whatever their replica types were called. Where master
and workers differ they are two jobs of a runtime, and each pod knows its rank by its place among all Jobs of the
JobSet: one master first, then a Job for each worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.legacy import kinds
from trainplane.api.legacy import names as old
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.legacy.migrate.pods import FIELD_GLOBAL_INDEX, FIELD_JOBSET_NAME
from trainplane.legacy.migrate.roles import lift, lifted, patch_of, port_of, replicated_job, with_variables
from trainplane.legacy.migrate.shipped import MAX_RESTARTS, PATIENT
from trainplane.legacy.migrate.variables import Meeting, variables_of
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.roles import Role

POLICIES: Final = {kinds.PYTORCH.name: "torch", kinds.XGBOOST.name: "xgboost", kinds.JAX.name: "jax"}
"""What mlPolicy calls the framework of a kind; it has no field for the others, which a runtime's label chooses."""
_JOBSET_NAME: Final = "JOBSET_NAME"
_RANKED: Final = (kinds.PYTORCH, kinds.XGBOOST)


def take_nodes(roles: list[Role], draft: Draft, *, backoff: int | None, nproc: str = "") -> None:
    """Make the jobs of the runtime, and what the TrainJob says of its nodes.

    Raises:
        RefusedError: the roles differ in a way that no runtime has.
    """
    kind = draft.kind
    if kind is kinds.PADDLE and any(role.type == old.MASTER for role in roles):
        problem = (
            "has no counterpart: TrainJobs run Paddle's collective training, and a master is a parameter server. "
            "Train without one, or keep the PaddleJob"
        )
        raise RefusedError([Finding(f"spec.{kind.specs}.{old.MASTER}", problem)])
    if all(role.runs_as(roles[0]) for role in roles):
        _take_alike(roles, draft, backoff, nproc)
    elif kind in _RANKED:
        _take_ranked(roles, draft, backoff, nproc)
    else:
        raise RefusedError([Finding(f"spec.{kind.specs}", "has templates that differ, and no runtime for them")])


def _take_alike(roles: list[Role], draft: Draft, backoff: int | None, nproc: str) -> None:
    kind, first = draft.kind, roles[0]
    count = sum(role.count for role in roles)
    port = port_of(first, kind)
    meeting = Meeting(
        tuple(f"{names.pod_hostname(draft.name, names.JOB_NODE, 0, pod)}.{draft.name}" for pod in range(count)),
        port or names.TRAINER_PORT,
        names.FIELD_PATH_COMPLETION_INDEX,
        int(nproc) if nproc.isdecimal() else 1,
        has_master=first.type == old.MASTER,
    )
    job = replicated_job(first, names.JOB_NODE, draft, trains=True, backoff=backoff, pods=count)
    for role in roles[1:]:
        draft.put(f"{role.path}.restartPolicy", f"as {first.type}'s")
    draft.jobs, draft.order = [lifted(job)], (names.JOB_NODE,)
    lift(first, draft, variables_of(kind, meeting))
    draft.trainer["numNodes"] = count
    draft.policy = {"numNodes": count}
    if kind.name in POLICIES:
        draft.policy[POLICIES[kind.name]] = {}
    patch = patch_of(first, kind)
    if patch is None or first.restart != old.RESTART_NEVER:
        draft.own = True
    else:
        draft.patch = patch
    if port is not None and (port != kind.port or draft.own):
        draft.own = True
        draft.annotations[names.ANNOTATION_PORT] = str(port)
    if count > 1 and meeting.has_master:
        text = "all nodes are one job now: it is complete when every one of them ended well, not the master alone"
        draft.note(f"{first.path}", "changed", text)


def settle(draft: Draft) -> None:
    """Settle what depends on whether there is a runtime of the job's own: who says which image, and what restarts."""
    if draft.own:
        if draft.order == (names.JOB_NODE,):
            draft.trainer.pop("image", None)
        return
    text = (
        f"the shipped ClusterTrainingRuntime {draft.shipped} fits. It restarts all pods after a disruption, and up to "
        f"{MAX_RESTARTS} times after a fault. To end the TrainJob at the first fault, copy the runtime without its "
        "runPolicy. Nodes meet on port 29500. The end of the log is the termination message"
    )
    if draft.framework in PATIENT:
        text += ". A pod that fails is replaced once"
    draft.note("spec", "changed", text, alters={"terminationMessagePolicy", "ports"})


def _take_ranked(roles: list[Role], draft: Draft, backoff: int | None, nproc: str) -> None:
    kind = draft.kind
    master, workers = roles[0], roles[1]
    job = f"$({_JOBSET_NAME})"
    hosts = (f"{job}-master-0-0.{job}", *(f"{job}-worker-{index}-0.{job}" for index in range(workers.count)))
    meeting = Meeting(
        hosts,
        port_of(master, kind) or kind.port,
        FIELD_GLOBAL_INDEX,
        int(nproc) if nproc.isdecimal() else 1,
        set_by_framework=False,
    )
    named = {"name": _JOBSET_NAME, "valueFrom": {"fieldRef": {"fieldPath": FIELD_JOBSET_NAME}}}
    variables = [named, *variables_of(kind, meeting, nproc=nproc or old.NPROC_AUTO)]
    draft.jobs = [
        with_variables(replicated_job(master, "master", draft, trains=True, backoff=backoff), variables),
        with_variables(
            replicated_job(workers, "worker", draft, trains=False, backoff=backoff, replicas=workers.count), variables
        ),
    ]
    draft.order = ("master", "worker")
    draft.policy = {"numNodes": 1}
    draft.jobset["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["master"]}
    draft.own = True
    text = "master and workers differ, so the runtime has a job for each; the TrainJob's trainer speaks of the master"
    draft.note(f"spec.{kind.specs}", "changed", text)
