"""Whether a job of v1 may exist, and what it is completed with before it does. Pure.

Refused is what training-operator v1.9.3 refuses, and what it takes and could never run. A job that is stored already is
judged by what an edit makes worse: Kueue must be able to suspend a job that came before us, whatever is wrong with it.

MPIJobs are judged by `mpi.judgement`, by the same `rules`.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.api.legacy import names
from trainplane.legacy.defaults import defaulted
from trainplane.legacy.rules import (
    MOST_PODS,
    judge_gang,
    judge_name,
    judge_policy,
    judge_policy_change,
    judge_size,
    listed,
)
from trainplane.render.findings import MOST_FINDINGS, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.legacy.kinds import Kind
    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Settings

LONGEST_VARIABLE: Final = 128 * 1024
"""Bytes that Linux hands to a process in one variable; with a longer one no container starts."""

_ONE_MASTER: Final = frozenset({names.PYTORCH_JOB, names.XGBOOST_JOB})
_SUCCESS_POLICIES: Final = (names.SUCCESS_DEFAULT, names.SUCCESS_ALL_WORKERS)


def default(kind: Kind, job: Tree) -> Tree:
    """Return a new job with what it leaves out. One that says a replica type twice is left for `problems` to refuse."""
    return job if _said_twice(kind, job) else defaulted(kind, job)


def problems(
    kind: Kind, new: Tree, old: Tree | None, settings: Settings, *, most_pods: int = MOST_PODS
) -> list[Finding]:
    """Return why a job may not be as it is; of an edit, what it makes worse.

    Of a job that is being deleted nothing is refused: whoever holds it back must be able to let it go.
    """
    if old is None:
        return list(islice(_judge(kind, new, settings, most_pods), MOST_FINDINGS))
    if new.get("spec") == old.get("spec") or trees.get(new, "metadata", "deletionTimestamp"):
        return []
    known = set(_judge(kind, old, settings, most_pods))
    found = (finding for finding in _judge(kind, new, settings, most_pods) if finding not in known)
    return list(islice(chain(judge_policy_change(new, old), found), MOST_FINDINGS))


def warnings(kind: Kind, job: Tree) -> list[str]:
    """Return what whoever writes the job should know, though it runs."""
    found = []
    if kind.name == names.PYTORCH_JOB and trees.get(job, "spec", "elasticPolicy", "nProcPerNode") is not None:
        found.append("spec.elasticPolicy.nProcPerNode: is deprecated: use spec.nprocPerNode instead")
    for name, replicas in _replicas(kind, job).items():
        own = trees.text(replicas, "template", "spec", "restartPolicy")
        if own is not None and own != trees.text(replicas, "restartPolicy"):
            found.append(
                f"{_path(kind, name)}.template.spec.restartPolicy: does not count: set restartPolicy of {name} itself"
            )
    return found


def _judge(kind: Kind, job: Tree, settings: Settings, most_pods: int) -> Iterator[Finding]:
    """Yield every reason to refuse a job, those that are told of one field first."""
    yield from _said_twice(kind, job)
    whole = defaulted(kind, job)
    replicas = trees.fields(whole, "spec", kind.specs)
    counts = _counts(kind, whole)
    yield from judge_policy(kind, whole, settings)
    for name, one in replicas.items():
        yield from _judge_replicas(kind, name, one)
    yield from _judge_roles(kind, whole)
    yield from _judge_elastic(kind, whole)
    yield from judge_size(f"spec.{kind.specs}", counts, most_pods)
    yield from judge_name(whole, counts)
    yield from judge_gang(whole, counts, settings)
    yield from _judge_listing(kind, whole, counts)


def _said_twice(kind: Kind, job: Tree) -> list[Finding]:
    """Return a finding for each replica type that a job says more than once, in small letters and in large."""
    seen: set[str] = set()
    found = []
    for name in trees.fields(job, "spec", kind.specs):
        if name.lower() in seen:
            found.append(Finding(_path(kind, name), "is said twice, spelt differently: say it once"))
        seen.add(name.lower())
    return found


def _replicas(kind: Kind, job: Tree) -> dict[str, Tree]:
    """Return the replicas of the types that there are; what is no object is the schema's to refuse."""
    said = trees.fields(job, "spec", kind.specs)
    return {name: said[name] for name in kind.types if isinstance(said.get(name), dict)}


def _counts(kind: Kind, job: Tree) -> dict[str, int]:
    """Return how many pods there may be of each type, at the most that an elastic job grows to."""
    counts = {name: max(trees.number(one, "replicas") or 0, 0) for name, one in _replicas(kind, job).items()}
    most = trees.number(job, "spec", "elasticPolicy", "maxReplicas") if kind.elastic else None
    if most is not None and names.WORKER in counts:
        counts[names.WORKER] = max(counts[names.WORKER], most)
    return counts


def _judge_replicas(kind: Kind, name: str, replicas: Any) -> Iterator[Finding]:
    path = _path(kind, name)
    if name not in kind.types:
        yield Finding(path, f"is no replica type of a {kind.name}: use {listed(kind.types)}")
        return
    count = trees.number(replicas, "replicas")
    least = 1 if (kind.name, name) == (names.PYTORCH_JOB, names.WORKER) else 0
    if count is not None and count < least:
        yield Finding(f"{path}.replicas", f"must be at least {least}: leave {name} out if there are to be none")
    if name == names.MASTER and kind.name in _ONE_MASTER and count != 1:
        yield Finding(f"{path}.replicas", "must be 1: the others find one master, and no second")
    restart = trees.text(replicas, "restartPolicy")
    if restart not in names.RESTART_POLICIES:
        yield Finding(f"{path}.restartPolicy", f"must be {listed(names.RESTART_POLICIES)}")
    yield from _judge_containers(kind, f"{path}.template.spec.containers", replicas)


def _judge_containers(kind: Kind, path: str, replicas: Any) -> Iterator[Finding]:
    containers = trees.entries(replicas, "template", "spec", "containers")
    for place, container in enumerate(containers):
        if trees.text(container, "image") is None:
            yield Finding(f"{path}[{place}].image", "is missing: name the image to run", "Required")
    if not any(container.get("name") == kind.container for container in containers):
        yield Finding(
            path, f'must have a container with the name "{kind.container}": it is the one that trains', "Required"
        )


def _judge_roles(kind: Kind, job: Tree) -> Iterator[Finding]:
    """Yield a finding if the types that a job has do not make a whole."""
    path = f"spec.{kind.specs}"
    types = _replicas(kind, job).keys()
    if kind.name == names.XGBOOST_JOB and names.MASTER not in types:
        yield Finding(_path(kind, names.MASTER), "is missing: the workers meet at it", "Required")
    if kind.name == names.TF_JOB:
        if {names.CHIEF, names.MASTER} <= types:
            yield Finding(path, "has both Chief and Master, which mean the same: keep Chief", "Forbidden")
        if job["spec"].get("successPolicy") not in _SUCCESS_POLICIES:
            yield Finding("spec.successPolicy", f"must be empty or {names.SUCCESS_ALL_WORKERS}")


def _judge_elastic(kind: Kind, job: Tree) -> Iterator[Finding]:
    policy = trees.get(job, "spec", "elasticPolicy") if kind.elastic else None
    if not isinstance(policy, dict):
        return
    if names.WORKER not in _replicas(kind, job):
        yield Finding(_path(kind, names.WORKER), "is missing: it is the workers that come and go", "Required")
    least, most = trees.number(policy, "minReplicas"), trees.number(policy, "maxReplicas")
    if least is not None and least < 1:
        yield Finding("spec.elasticPolicy.minReplicas", "must be at least 1")
    if least is not None and most is not None and most < least:
        yield Finding("spec.elasticPolicy.maxReplicas", f"is less than minReplicas: use at least {least}")
    if kind.name == names.PYTORCH_JOB and None not in {policy.get("nProcPerNode"), job["spec"].get("nprocPerNode")}:
        yield Finding("spec.elasticPolicy.nProcPerNode", "says what spec.nprocPerNode says: keep that one", "Forbidden")


def _judge_listing(kind: Kind, job: Tree, counts: dict[str, int]) -> Iterator[Finding]:
    """Yield a finding if the list of all addresses, which each pod gets in a variable, is longer than one can be.

    TensorFlow lists everybody (unless workers come and go), XGBoost all workers. The list is taken at its shortest.
    """
    name = trees.text(job, "metadata", "name") or ""
    if kind.name == names.TF_JOB and job["spec"].get("enableDynamicWorker") is not True:
        listed_types, around = counts, len('"..svc:2222",') + len(trees.text(job, "metadata", "namespace") or "")
    elif kind.name == names.XGBOOST_JOB:
        listed_types, around = {names.WORKER: counts.get(names.WORKER, 0)}, len(",")
    else:
        return
    length = sum(count * (len(names.pod_name(name, one, 0)) + around) for one, count in listed_types.items())
    if length > LONGEST_VARIABLE:
        yield Finding(
            f"spec.{kind.specs}",
            f"asks for so many pods that the list of their addresses, which each gets in a variable, would have "
            f"{length} characters, and Linux starts no process with more than {LONGEST_VARIABLE}: use fewer replicas",
        )


def _path(kind: Kind, name: str) -> str:
    return f"spec.{kind.specs}.{name}"
