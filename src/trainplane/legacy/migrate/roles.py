"""The replicas of an older job, read: how many pods of which template, and what happens when one ends badly.

What a pod template says goes into a runtime as it stands; only the container that trains takes the name that TrainJobs
know it by. Each restart policy becomes what a Job does with its pods:

    Never        A failed pod fails the job. `runPolicy` allows no restart after a fault.
    OnFailure    The kubelet restarts the containers in place, up to runPolicy.backoffLimit.
    Always       The same. A pod of a Job that succeeded is not restarted.
    ExitCode     A pod that exits with 128 or more is replaced. An exit code from 1 to 127 fails the job.

A disruption never ends a migrated job. With ExitCode, the Job replaces a disrupted pod. With each policy, the operator
restarts all pods if a Job fails because a pod was stopped (`trainplane.operator.recovery`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old
from trainplane.api.patches import PodSpecPatch

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft

WITHOUT_END: Final = 2**31 - 1
"""How often a Job's pods may fail if nobody says how often."""
_PERMANENT: Final = list(range(1, 128))
"""Exit codes that the policy ExitCode takes for final."""
_DISRUPTED: Final = {"type": "DisruptionTarget", "status": "True"}
_IN_PLACE: Final = frozenset({old.RESTART_ALWAYS, old.RESTART_ON_FAILURE})
"""Policies by which the kubelet restarts containers in place."""
_TRAINER_FIELDS: Final = ("image", "command", "args", "env", "resources")
_PATCHED: Final = frozenset(PodSpecPatch.__struct_encode_fields__) - {"containers", "initContainers"}
_PATCHED_CONTAINER: Final = frozenset({"volumeMounts", "securityContext"})
_METADATA: Final = ("labels", "annotations")


@dataclass(frozen=True, slots=True)
class Role:
    """The replicas of one type."""

    type: str
    path: str
    """Where they stand in the job."""
    count: int
    restart: str
    template: Tree
    container: Tree
    """The container that trains, of the template."""

    @property
    def pod_spec(self) -> Tree:
        """The pods' spec as the user wrote it, without what the old operators overwrote."""
        return {key: value for key, value in trees.fields(self.template, "spec").items() if key != "restartPolicy"}

    @property
    def pod_metadata(self) -> Tree:
        """Labels and annotations for the pods."""
        metadata = trees.fields(self.template, "metadata")
        return {key: metadata[key] for key in _METADATA if metadata.get(key)}

    def runs_as(self, other: Role) -> bool:
        """Return whether pods of both are made alike."""
        return (self.template, self.restart) == (other.template, other.restart)


def roles_of(kind: Kind, job: Tree, draft: Draft) -> list[Role]:
    """Return the roles of a job in the order of its kind's types; roles without a pod are left out."""
    at = f"spec.{kind.specs}"
    specs = {key.lower(): value for key, value in trees.fields(job, "spec", kind.specs).items()}
    found = [(one, specs[one.lower()]) for one in kind.types if one.lower() in specs]
    roles = [_role(kind, replica_type, spec, f"{at}.{replica_type}") for replica_type, spec in found]
    for role in roles:
        _note_template(role, draft)
    return [role for role in roles if role.count]


def _role(kind: Kind, replica_type: str, spec: Tree, path: str) -> Role:
    template = trees.fields(spec, "template")
    containers = trees.entries(template, "spec", "containers")
    # MPI's processes begin in the first, whatever its name
    named = containers if kind.name == old.MPI_JOB else [one for one in containers if one.get("name") == kind.container]
    restart = spec.get("restartPolicy") or kind.restart_of(replica_type)
    return Role(replica_type, path, spec.get("replicas", 1), restart, template, named[0])


def _note_template(role: Role, draft: Draft) -> None:
    draft.put(f"{role.path}.replicas")
    draft.put(f"{role.path}.template")
    if trees.get(role.template, "spec", "restartPolicy") is not None:
        place = f"{role.path}.template.spec.restartPolicy"
        draft.note(place, "left out", "the old operator overwrote it with restartPolicy of the replicas")
    for key in sorted(trees.fields(role.template, "metadata").keys() - set(_METADATA)):
        text = "the old operator named its pods itself, and so does JobSet"
        draft.note(f"{role.path}.template.metadata.{key[:63]}", "left out", text)


def replicated_job(
    role: Role, name: str, draft: Draft, *, trains: bool, backoff: int | None, replicas: int = 1, pods: int = 1
) -> Tree:
    """Return the job of a runtime that makes the pods of a role; the container that trains is called `node` there."""
    pod = trees.copy(role.pod_spec)
    for container in pod["containers"]:
        if container.get("name") == role.container.get("name"):
            container["name"] = names.CONTAINER_NODE
    job: Tree = _restarting(role, draft, backoff) | {"parallelism": pods, "completions": pods}
    pod["restartPolicy"] = old.RESTART_ON_FAILURE if role.restart in _IN_PLACE else old.RESTART_NEVER
    job["template"] = {"metadata": role.pod_metadata, "spec": pod} if role.pod_metadata else {"spec": pod}
    template: Tree = {"spec": job}
    if trains:
        template = {"metadata": {"labels": {names.LABEL_ANCESTOR: names.ANCESTOR_TRAINER}}, **template}
    return {"name": name, "replicas": replicas, "template": template}


def max_restarts(roles: list[Role], backoff: int | None) -> int:
    """Return how often the operator may restart all pods of a migrated job after a fault.

    The policies OnFailure and Always promised `runPolicy.backoffLimit` restarts, and a deleted pod did not count. A Job
    counts deleted pods, and a podFailurePolicy can't exempt them if restartPolicy is OnFailure. With the same number of
    restarts by the operator, disruptions that use up a Job's backoffLimit don't end the TrainJob.

    With Never and ExitCode, a fault that fails a Job is final. Without a backoffLimit, no Job fails.
    """
    return (backoff or 0) if all(role.restart in _IN_PLACE for role in roles) else 0


def _restarting(role: Role, draft: Draft, backoff: int | None) -> Tree:
    place = f"{role.path}.restartPolicy"
    limit = WITHOUT_END if backoff is None else backoff
    if role.restart == old.RESTART_NEVER:
        draft.put(place)
        return {"backoffLimit": 0}
    if role.restart == old.RESTART_EXIT_CODE:
        draft.put(
            place,
            "as podFailurePolicy. A disrupted pod is replaced and not counted. Exit codes from 1 to 127 fail the job. "
            "After another exit code, the pod is replaced",
        )
        rules = [
            {"action": "Ignore", "onPodConditions": [_DISRUPTED]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": _PERMANENT}},
        ]
        return {"backoffLimit": limit, "podFailurePolicy": {"rules": rules}}
    if role.restart == old.RESTART_ALWAYS:
        text = "OnFailure: a pod that ended well stays ended"
        draft.note(place, "changed", text, alters={"restartPolicy"})
    else:
        draft.put(place)
    return {"backoffLimit": limit}


def with_variables(job: Tree, variables: list[Tree]) -> Tree:
    """Return a job whose container that trains has variables; they stand last, for some refer to earlier ones."""
    place = ("template", "spec", "template", "spec", "containers", ("name", names.CONTAINER_NODE), "env")
    ours = {entry["name"] for entry in variables}
    said = [entry for entry in trees.get(job, *place) or () if entry.get("name") not in ours]
    result: Tree = trees.put(job, *place, value=[*said, *trees.copy(variables)])
    return result


def lift(role: Role, draft: Draft, variables: list[Tree]) -> None:
    """Let the TrainJob say what people change from run to run: what runs, with which variables and resources.

    `variables` are the older kind's own. The old operators wrote them over the user's, so of two the user's goes.
    """
    container, place = role.container, f"{role.path}.template.spec.containers.env"
    ours = {entry["name"] for entry in variables}
    env = {entry.get("name"): entry for entry in trees.entries(container, "env")}
    for name in sorted(ours & env.keys(), key=str):
        text = f"{name}: the old operator wrote its own value over it, and so does the training's"
        draft.note(place, "left out", text, alters={f"env {name}"})
    said = [entry for name, entry in env.items() if name not in ours]
    kept = {key: trees.copy(container[key]) for key in ("command", "args") if container.get(key)}
    if "args" in kept and "command" not in kept:
        kept = {"command": [], **kept}  # the image's own, and not torchrun
    if container.get("image"):
        kept = {"image": container["image"], **kept}
    draft.trainer |= kept
    said += [entry for entry in variables if "value" in entry or "valueFrom" in entry]
    if said:
        draft.trainer["env"] = said
    if container.get("resources"):
        draft.trainer["resourcesPerNode"] = trees.copy(container["resources"])


def lifted(job: Tree) -> Tree:
    """Return a runtime's job without what the TrainJob says of its container; the image stays, for the SDK to list."""
    place = ("template", "spec", "template", "spec", "containers", ("name", names.CONTAINER_NODE))
    for key in _TRAINER_FIELDS[1:]:
        job = trees.drop(job, *place, key)
    return job


def patch_of(role: Role, kind: Kind) -> Tree | None:
    """Return what a TrainJob changes in a shipped runtime for such pods; None if a patch cannot say it."""
    pod, container = role.pod_spec, role.container
    if len(trees.entries(pod, "containers")) != 1 or pod.keys() - _PATCHED - {"containers"}:
        return None
    beside = container.keys() - set(_TRAINER_FIELDS) - _PATCHED_CONTAINER - {"name", "ports"}
    mounts = [mount.get("name") for mount in trees.entries(container, "volumeMounts")]
    if beside or len(mounts) != len(set(mounts)) or not _is_usual(container, kind):
        return None
    spec: Tree = {key: trees.copy(value) for key, value in pod.items() if key in _PATCHED}
    changes = {key: trees.copy(container[key]) for key in sorted(_PATCHED_CONTAINER & container.keys())}
    if changes:
        spec["containers"] = [{"name": names.CONTAINER_NODE, **changes}]
    template: Tree = {"spec": spec} if spec else {}
    if role.pod_metadata:
        template = {"metadata": trees.copy(role.pod_metadata), **template}
    return {"spec": {"template": template}} if template else {}


def port_of(role: Role, kind: Kind) -> int | None:
    """Return the port on which the nodes meet, if the container names it as the kind does."""
    ports = (one for one in trees.entries(role.container, "ports") if one.get("name") == kind.port_name)
    return next((trees.number(one, "containerPort") for one in ports), None)


def _is_usual(container: Tree, kind: Kind) -> bool:
    """Return whether a container opens no other port than the one that its kind has anyway."""
    usual = {"name": kind.port_name, "containerPort": kind.port}
    return all({**one, "protocol": "TCP"} == {**usual, "protocol": "TCP"} for one in trees.entries(container, "ports"))
