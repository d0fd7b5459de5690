"""A cluster by itself: whether it answers, with what credentials, and whether it serves what MultiKueue needs."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainplane.hub.check.facts import NEEDED, Unseen
from trainplane.hub.check.report import Check, Finding
from trainplane.kube.version import is_too_old, oldest, release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from trainplane.hub.check.facts import ClusterFacts, Facts, Permission, WorkerFacts

_SOON: Final = timedelta(days=7)
"""Before its end, a token is spoken of: who makes new ones may be on leave."""
_SOON_CERTIFICATE: Final = timedelta(days=30)
"""Before its end, a client certificate is spoken of: somebody must sign a new one, and it was good for a year."""
_OLDEST_KUEUE: Final = (0, 17)
"""The first Kueue that speaks `spec.runtimePatches`."""
_OF_KUBECONFIGS: Final = frozenset({"BadKubeConfig", "InsecureKubeConfig"})
"""Reasons of Kueue whose messages may quote the kubeconfig, with its token: a name that stands twice is told with the
whole list."""
_OWNER: Final = {
    "trainer.kubeflow.org": "the trainer's CRDs (manifests/crds)",
    "jobset.x-k8s.io": "JobSet",
    "kueue.x-k8s.io": "Kueue",
}


def judge_connection(worker: WorkerFacts) -> Check:
    """Return whether a worker answers, and what Kueue itself thinks of the connection."""
    findings = []
    if worker.trouble:
        remedy = "make the worker's API server reachable from the hub; a job that runs there is given up after Kueue's"
        findings.append(Finding("stops", worker.trouble, f"{remedy} workerLostTimeout (15 minutes unless configured)"))
    active = worker.active
    if active is None:
        problem = f"MultiKueueCluster {worker.name} has no condition Active: Kueue has not tried to connect"
        findings.append(
            Finding("stops", problem, "see that Kueue runs on the hub, with its feature gate MultiKueue on")
        )
    elif active.get("status") != "True":
        reason = str(active.get("reason") or "no reason")
        said = str(active.get("message") or "no message")
        if reason in _OF_KUBECONFIGS:
            said = f"for its message see kubectl describe multikueuecluster {worker.name}"
        problem = f"MultiKueueCluster {worker.name} is not connected, says Kueue: {reason}: {said}"
        remedy = "repair what it says" if not worker.trouble else "Kueue connects again by itself once it can"
        findings.append(Finding("stops", problem, remedy))
    cluster = worker.cluster
    summary = f"{cluster.server}, Kubernetes {cluster.version}" if cluster else "it does not answer"
    if worker.looked_as:
        summary += f" (looked at with context {worker.looked_as})"
    return Check("connection", summary, tuple(findings))


def judge_credentials(worker: WorkerFacts, now: datetime) -> Check:
    """Return whether Kueue may use a worker's kubeconfig, and whether the worker lets its owner do what it must."""
    remedy = "until then nothing here uses this kubeconfig; Kueue itself refuses most such (InsecureKubeConfig)"
    findings = [Finding("stops", f"{worker.place}: {refusal}", remedy) for refusal in worker.refusals]
    findings += _ends(worker, now)
    permissions = worker.permissions
    if isinstance(permissions, Unseen):
        problem = f"what MultiKueue's credentials may do cannot be asked: {permissions.detail}"
        findings.append(Finding("unseen", problem, "repair the connection first"))
        return Check("credentials", worker.place, tuple(findings))
    for denied in _denied(permissions):
        problem = f"MultiKueue's credentials may not {denied}"
        remedy = f"add a rule with these verbs to the ClusterRole of the identity in {worker.place}"
        findings.append(Finding("stops", problem, remedy))
    if not isinstance(worker.view_permissions, Unseen):
        for denied in _denied(worker.view_permissions):
            problem = (
                f"MultiKueue's credentials may not {denied}: the hub view cannot keep the logs of this worker's jobs"
            )
            remedy = f"apply manifests/hub/worker-role.yaml on the worker, bound to the identity in {worker.place}"
            findings.append(Finding("warns", problem, remedy))
    allowed_count = sum(permissions.values())
    summary = f"{worker.place}, {allowed_count} of {len(permissions)} permissions" if permissions else worker.place
    return Check("credentials", summary, tuple(findings))


def judge_versions(facts: Facts, cluster: ClusterFacts, *, is_hub: bool) -> Check:
    """Return whether a cluster serves the APIs that every dispatched TrainJob needs."""
    findings = [
        *_kubernetes(cluster),
        *_missing(cluster),
        *_runtime_patches(cluster),
        *_engines(facts.hub, cluster, is_hub=is_hub),
    ]
    engines = [f"{name} {version}" for name, version in cluster.engines.items()]
    served = [api for api in NEEDED if api in cluster.served]
    start = [f"Kubernetes {cluster.version}"] if is_hub else []
    return Check("versions", ", ".join([*start, *engines, *served]), tuple(findings))


def _denied(permissions: Mapping[Permission, bool]) -> Iterator[str]:
    """Iterate over what may not be done, each resource once: `create, delete trainjobs.trainer.kubeflow.org`."""
    refused: dict[str, list[str]] = defaultdict(list)
    for permission, allowed in permissions.items():
        if not allowed:
            refused[f"{permission.resource}.{permission.group}".rstrip(".")].append(permission.verb)
    for resource, verbs in refused.items():
        yield f"{', '.join(verbs)} {resource}"


def _ends(worker: WorkerFacts, now: datetime) -> Iterator[Finding]:
    """Speak of credentials that end soon, or have ended."""
    token = f"make a new one on the worker (kubectl create token) and put it into {worker.place}"
    certificate = f"have a new one signed by the worker's authority, and put it with its key into {worker.place}"
    for what, end, soon, remedy in (
        ("token", worker.token_end, _SOON, token),
        ("client certificate", worker.certificate_end, _SOON_CERTIFICATE, certificate),
    ):
        if end is None or end - now > soon:
            continue
        when = f"{end:%Y-%m-%d %H:%M} UTC"
        if end <= now:
            yield Finding("stops", f"{worker.place}: the {what} ended at {when}", remedy)
        else:
            yield Finding("warns", f"{worker.place}: the {what} ends at {when}, in {_span(end - now)}", remedy)


def _span(length: timedelta) -> str:
    hours = int(length.total_seconds() // 3600)
    if hours < 48:
        return f"{hours} hours" if hours != 1 else "1 hour"
    return f"{hours // 24} days"


def _kubernetes(cluster: ClusterFacts) -> Iterator[Finding]:
    if is_too_old(cluster.version):
        problem = f"Kubernetes {cluster.version} is not supported: the operator ends there"
        yield Finding("stops", problem, f"upgrade the cluster to {oldest()} or newer")


def _missing(cluster: ClusterFacts) -> Iterator[Finding]:
    for api, plurals in NEEDED.items():
        group, _, version = api.partition("/")
        install = _OWNER[group]
        served = cluster.served.get(api)
        if served is None:
            others = ", ".join(cluster.other_versions.get(group, ()))
            if others:
                problem = f"{api} is not served, only {others} of that group"
                yield Finding("stops", problem, f"install {install} of a release that has {version}")
            else:
                yield Finding("stops", f"{api} is not served", f"install {install}")
            continue
        missing = [plural for plural in plurals if plural not in served]
        if missing:
            yield Finding("stops", f"{api} is served without {', '.join(missing)}", f"install {install} whole")


def _runtime_patches(cluster: ClusterFacts) -> Iterator[Finding]:
    if cluster.runtime_patches is False:
        problem = "the TrainJob CRD has no spec.runtimePatches, into which Kueue writes: no queued TrainJob ever starts"
        yield Finding("stops", problem, f"install {_OWNER['trainer.kubeflow.org']} of v2.2 or later")
    elif isinstance(cluster.runtime_patches, Unseen) and cluster.runtime_patches.why != "missing":
        problem = f"whether the TrainJob CRD has spec.runtimePatches cannot be seen: {cluster.runtime_patches.detail}"
        yield Finding("unseen", problem, "allow GET of /openapi/v3 (ClusterRole system:discovery has it)")


def _engines(hub: ClusterFacts, cluster: ClusterFacts, *, is_hub: bool) -> Iterator[Finding]:
    here, there = (release(one.engines.get("Kueue", "")) for one in (cluster, hub))
    if here is not None and here < _OLDEST_KUEUE:
        problem = f"Kueue {cluster.engines['Kueue']} does not know spec.runtimePatches: no queued TrainJob ever starts"
        yield Finding("stops", problem, "install Kueue v0.17 or later")
    elif not is_hub and here is not None and there is not None and here != there:
        problem = f"Kueue is {cluster.engines['Kueue']} here and {hub.engines['Kueue']} on the hub"
        remedy = "install the same minor release: both compute a job's pods, and a job whose pods differ is sent back"
        yield Finding("warns", problem, remedy)
