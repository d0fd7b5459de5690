"""What a job of v1 that leaves something out takes for granted.

Admission writes it into the job; a job that came before our webhook, or past it, is completed when it is read. Doing so
twice changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.api import tree as trees
from trainplane.api.legacy import names

if TYPE_CHECKING:
    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree


def defaulted(kind: Kind, job: Tree) -> Tree:
    """Return the job of v1 with what it leaves out; what has another form than it ought to is left as it is."""
    spec = dict(trees.fields(job, "spec"))
    policy = trees.fields(spec, "runPolicy")
    spec["runPolicy"] = {"cleanPodPolicy": names.CLEAN_NONE, **trees.without_nulls(policy)}
    replicas = trees.fields(spec, kind.specs)
    spec[kind.specs] = {name: _replicas(kind, name, one) for name, one in _spelled(kind, replicas).items()}
    if kind.name == names.TF_JOB and spec.get("successPolicy") is None:
        spec["successPolicy"] = names.SUCCESS_DEFAULT
    if kind.elastic and isinstance(spec.get("elasticPolicy"), dict):
        spec["elasticPolicy"] = _elastic(
            spec["elasticPolicy"], trees.number(spec, kind.specs, names.WORKER, "replicas")
        )
    if kind.name == names.PYTORCH_JOB and trees.get(spec, "elasticPolicy", "nProcPerNode") is None:
        spec["nprocPerNode"] = spec.get("nprocPerNode") or names.NPROC_AUTO
    return {**job, "spec": spec}


def _spelled(kind: Kind, replicas: Tree) -> Tree:
    """Return the replicas by the names of their types as the kind spells them; a name that is none stays as it is."""
    known = {name.lower(): name for name in kind.types}
    spelled = {known.get(name.lower(), name): one for name, one in replicas.items()}
    return {**spelled, **{name: one for name, one in replicas.items() if name in kind.types}}


def _replicas(kind: Kind, name: str, said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    replicas = trees.without_nulls(said)
    return {
        **replicas,
        "replicas": replicas.get("replicas", 1),
        "restartPolicy": replicas.get("restartPolicy") or kind.restart_of(name),
        "template": _with_port(kind, replicas.get("template")),
    }


def _with_port(kind: Kind, template: Any) -> Any:
    """Return a template whose training container, or else the first, has the port that the others look for."""
    containers = trees.entries(template, "spec", "containers")
    if not containers:
        return template
    place = next((i for i, one in enumerate(containers) if one.get("name") == kind.container), 0)
    ports = trees.entries(containers[place], "ports")
    if any(port.get("name") == kind.port_name for port in ports):
        return template
    ports = [*ports, {"name": kind.port_name, "containerPort": kind.port}]
    return trees.put(template, "spec", "containers", place, "ports", value=ports)


def _elastic(policy: Tree, workers: int | None) -> Tree:
    policy = trees.without_nulls(policy)
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    bounds = {"minReplicas": _first(least, most, workers), "maxReplicas": _first(most, least, workers)}
    return {**policy, **{name: bound for name, bound in bounds.items() if bound is not None}}


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
