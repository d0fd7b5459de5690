"""Faults to plant in our side, to see that the comparison finds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainplane.api import tree as trees
from trainplane.legacy.mpi import decide, gang, hosts, job, judgement, objects, pods, status

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.api.tree import Tree
    from trainplane.legacy.decision import Decision


@dataclass(frozen=True)
class Fault:
    """A part of ours, and what stands there instead."""

    what: str
    target: Any
    name: str
    instead: Any


def _property(value: Callable[[job.MPIJob], Any]) -> property:
    return property(value)


def _changed(make: Callable[..., Tree | None], *path: trees.Step, value: Any) -> Callable[..., Tree | None]:
    def instead(*arguments: Any) -> Tree | None:
        made = make(*arguments)
        changed: Tree | None = trees.put(made, *path, value=value) if made else made
        return changed

    return instead


def _without(make: Callable[..., Tree], *path: trees.Step) -> Callable[..., Tree]:
    def instead(*arguments: Any) -> Tree:
        changed: Tree = trees.drop(make(*arguments), *path)
        return changed

    return instead


_run = decide._Look.run


def _run_without_deletes(look: Any) -> Decision:
    return replace(_run(look), delete=())


_LABELS = ("metadata", "labels")
FAULTS = (
    Fault("hosts lack the namespace", hosts, "address", lambda job_, host, _: f"{host}.{job_.name}.svc"),
    Fault(
        "hosts ignore the domain", hosts, "address", lambda job_, host, _: f"{host}.{job_.name}.{job_.namespace}.svc"
    ),
    Fault("slots in the wrong form", hosts, "_slots", lambda job_: f" slots={job_.slots}"),
    Fault("no launcher among the hosts", hosts, "_and_launcher", lambda _, workers: iter(workers)),
    Fault("workers count from 1", hosts, "worker_name", lambda name, index: f"{name}-worker-{index + 1}"),
    Fault("another launcher's name", hosts, "launcher_name", lambda name: f"{name}-start"),
    Fault("a Service with an address", objects, "service", _without(objects.service, "spec", "clusterIP")),
    Fault("a Service without its label", objects, "service", _without(objects.service, *_LABELS)),
    Fault("another ConfigMap", objects, "config_name", lambda name: f"{name}-hosts"),
    Fault("another Secret", objects, "secret_name", lambda name: f"{name}-keys"),
    Fault("workers sleep", pods, "_SSHD", ("sleep", "infinity")),
    Fault("keys for all", pods, "_FOR_OWNER", 0o644),
    Fault("a script that nobody runs", pods, "_FOR_ALL_TO_RUN", 0o444),
    Fault("no variables", pods, "_variables", lambda _: []),
    Fault("launchers take GPUs", pods, "_NO_GPU", ()),
    Fault("retries are dropped", pods, "_RUN_PARTS", ("activeDeadlineSeconds", "ttlSecondsAfterFinished")),
    Fault("two launchers at once", pods, "launcher", _without(pods.launcher, "spec", "podReplacementPolicy")),
    Fault(
        "a worker without its number",
        pods,
        "worker",
        _without(pods.worker, *_LABELS, "training.kubeflow.org/replica-index"),
    ),
    Fault("a worker of another subdomain", pods, "worker", _changed(pods.worker, "spec", "subdomain", value="x")),
    Fault("a worker that nobody owns", pods, "worker", _without(pods.worker, "metadata", "ownerReferences")),
    Fault("a gang of workers alone", gang, "pod_group", _changed(gang.pod_group, "spec", "minMember", value=2)),
    Fault("pods that no gang knows", gang, "decorated", lambda template, *_: template),
    Fault("policy is not read", job.MPIJob, "clean", _property(lambda _: "None")),
    Fault("suspension is not read", job.MPIJob, "suspended", _property(lambda _: False)),
    Fault("the launcher never waits", job.MPIJob, "launcher_waits", _property(lambda _: False)),
    Fault("surplus workers stay", decide._Look, "run", _run_without_deletes),
    Fault("every worker is ready", decide, "_is_ready", lambda _: True),
    Fault("nothing ends", decide, "has_ended", lambda _: False),
    Fault("no phase", status, "phase", lambda _: None),
    Fault("reasons of v1", status, "_EVICTED", "MPIJobFailed"),
    Fault("failures without the pod's reason", status, "_BACKOFF", ""),
    Fault("any restart policy", judgement, "_RESTARTS", ("Never", "OnFailure", "Always", "ExitCode")),
    Fault("any name", judgement, "judge_name", lambda *_: ()),
    Fault("any policy", judgement, "judge_policy", lambda *_: ()),
    Fault("no default of slots", judgement, "_DEFAULTS", {}),
)
