"""What the facts mean: each a line, with what to do about it. Pure: no I/O, and the time is one of the facts."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.doctor.admission import judge_trial, judge_webhooks
from trainplane.client.doctor.facts import DEEDS, NEEDED, QUEUE_DEEDS, Unseen
from trainplane.client.doctor.queues import judge_queues
from trainplane.client.doctor.report import Finding, Report
from trainplane.kube.version import is_too_old, oldest
from trainplane.resources import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.client.doctor.facts import Access, Cluster, Deed, Facts, Machine
    from trainplane.kube.resource import Resource

NEWEST_PYTHON: Final = (3, 13)
"""The newest on which the unit tests ran; docs/platforms.md."""
_SOON: Final = {"client certificate": timedelta(days=7), "token": timedelta(hours=1)}
"""Before their end they are spoken of: somebody must sign a certificate, most tokens are of a day anyway."""
_SKEW: Final = timedelta(seconds=30)
"""From here on times that two clocks tell do not fit together: ages, timelines, the order of log lines."""
_GREAT_SKEW: Final = timedelta(minutes=5)
"""From here on tokens and certificates are refused for times that are not theirs."""
_OWNERS: Final = {names.GROUP: "the trainer's CRDs (docs/install.md)", "jobset.x-k8s.io": "JobSet"}


def judge(facts: Facts) -> Report:
    """Return what all facts mean, each area once those before it are there."""
    findings = [*_machine(facts.machine), *_connection(facts)]
    if facts.cluster is not None and facts.access is not None:
        cluster, namespace = facts.cluster, facts.access.namespace
        findings += [
            *_apis(cluster),
            *judge_webhooks(cluster, facts.now),
            *_runtimes(cluster, namespace, facts.runtime),
            *judge_queues(cluster, namespace),
            *_rights(cluster, namespace),
            *judge_trial(cluster),
        ]
    return Report(tuple(findings), reached=facts.cluster is not None)


def _machine(machine: Machine) -> Iterator[Finding]:
    version = "{}.{}".format(*machine.python)
    if machine.python > NEWEST_PYTHON:
        tested = "{}.{}".format(*NEWEST_PYTHON)
        yield Finding("machine", "warning", f"Python {version} was not tried", f"use one of 3.11 to {tested}")
    else:
        yield Finding("machine", "ok", f"Python {version} on {machine.system}")
    if machine.system != "Linux":
        yield Finding(
            "machine", "warning", f"--local and --containers need Linux, and this is {machine.system}",
            "run on a cluster, or inside WSL or a Linux machine; everything else works here",
        )  # fmt: skip
        return
    if machine.torch:
        yield Finding("machine", "ok", "PyTorch is installed: run --local works with torch runtimes")
    else:
        yield Finding(
            "machine", "warning", "PyTorch is not installed: run --local cannot run torch runtimes",
            "pip install torch, if you want to run jobs on this machine",
        )  # fmt: skip
    if machine.engine:
        yield Finding("machine", "ok", f"{machine.engine} answers: run --containers works")
    else:
        yield Finding(
            "machine", "warning", f"run --containers does not work: {machine.engine_trouble}",
            "start docker or podman, if you want to run jobs in containers of this machine",
        )  # fmt: skip


def _connection(facts: Facts) -> Iterator[Finding]:
    access, cluster = facts.access, facts.cluster
    if access is None:
        yield Finding(
            "connection",
            "wrong",
            facts.trouble,
            "give --kubeconfig or --context, or log in as your cluster asks you to",
        )
        return
    place = f"context {access.context}" if access.context else "the account of this pod"
    yield from _ends(facts, access, place)
    if cluster is None:
        remedy = "see that the address is right, and that you are logged in (kubectl version asks the same server)"
        yield Finding("connection", "wrong", f"{access.server} ({place}) does not answer: {facts.trouble}", remedy)
        return
    if is_too_old(cluster.version):
        problem = f"Kubernetes {cluster.version} of {access.server} is not supported"
        yield Finding("connection", "wrong", problem, f"upgrade the cluster to {oldest()} or newer")
    else:
        yield Finding("connection", "ok", f"{access.server} ({place}) answers: Kubernetes {cluster.version}")
    yield from _clock(cluster)


def _ends(facts: Facts, access: Access, place: str) -> Iterator[Finding]:
    for what, end in (("client certificate", access.certificate_end), ("token", access.token_end)):
        if end is None:
            continue
        when = f"{end:%Y-%m-%d %H:%M} UTC"
        if end <= facts.now:
            yield Finding("connection", "wrong", f"the {what} of {place} ended at {when}", "log in again")
        elif end - facts.now < _SOON[what] and (what != "token" or access.context):
            yield Finding("connection", "warning", f"the {what} of {place} ends at {when}", "log in again before that")
        else:
            yield Finding("connection", "ok", f"the {what} of {place} is good until {when}")


def _clock(cluster: Cluster) -> Iterator[Finding]:
    if cluster.ahead is None:
        yield Finding("connection", "unknown", "the API server does not say what time it is", "compare clocks by hand")
        return
    off = abs(cluster.ahead)
    if off < _SKEW:
        yield Finding("connection", "ok", "clocks agree")
        return
    where = "behind" if cluster.ahead > timedelta() else "ahead of"
    text = f"this machine's clock is {int(off.total_seconds())} s {where} the cluster's"
    yield Finding("connection", "wrong" if off >= _GREAT_SKEW else "warning", text, "set the clock, by NTP at best")


def _apis(cluster: Cluster) -> Iterator[Finding]:
    for api, needed in NEEDED.items():
        install = _OWNERS[api.partition("/")[0]]
        served = cluster.served[api]
        if isinstance(served, Unseen):
            if served.why == "missing":
                yield Finding("APIs", "wrong", f"{api} is not served: no TrainJob can run", f"install {install}")
            else:
                remedy = "ask an admin for the ClusterRole system:discovery"
                yield Finding("APIs", "unknown", f"whether {api} is served cannot be seen: {served.detail}", remedy)
            continue
        missing = [one.plural for one in needed if one.plural not in served or _is_gone(cluster, one)]
        if missing:
            problem = f"{api} is served without {', '.join(missing)}"
            yield Finding("APIs", "wrong", problem, f"install {install} whole")
            continue
        troubles = [finding for one in needed for finding in _definition(cluster, one)]
        yield from troubles or [Finding("APIs", "ok", f"{api} is served: {', '.join(one.plural for one in needed)}")]


def _is_gone(cluster: Cluster, resource: Resource) -> bool:
    """Return whether a CRD is not there: discovery goes on telling of it for a while."""
    found = cluster.definitions[f"{resource.plural}.{resource.group}"]
    return isinstance(found, Unseen) and found.why == "missing"


def _definition(cluster: Cluster, resource: Resource) -> Iterator[Finding]:
    """Judge a CRD. One that may not be seen is no trouble: that it is served was seen."""
    name = f"{resource.plural}.{resource.group}"
    found = cluster.definitions[name]
    if isinstance(found, Unseen):
        return
    for condition, wanted in (("Established", "True"), ("NamesAccepted", "True"), ("NonStructuralSchema", "False")):
        status = trees.get(found, "status", "conditions", ("type", condition))
        if status is not None and status.get("status") != wanted:
            said = str(status.get("message") or status.get("reason") or "no reason")[:200]
            yield Finding("APIs", "wrong", f"CRD {name}: {condition} is {status.get('status')}: {said}", "repair it")
    storage = [one.get("name") for one in trees.entries(found, "spec", "versions") if one.get("storage")]
    others = [one for one in trees.get(found, "status", "storedVersions") or () if one not in storage]
    if others:
        text = f"CRD {name}: objects may be stored as {', '.join(map(str, others))}, and new ones are as {storage[0]}"
        remedy = "write each object once more (kubectl get -o yaml | kubectl replace), then take it off storedVersions"
        yield Finding("APIs", "warning", text, remedy)


def _runtimes(cluster: Cluster, namespace: str, default: str) -> Iterator[Finding]:
    found = cluster.runtimes
    if isinstance(found, Unseen):
        if found.why != "missing":
            remedy = "ask an admin for a role that lets you list clustertrainingruntimes"
            yield Finding("runtimes", "unknown", f"runtimes cannot be seen: {found.detail}", remedy)
        return
    if default in found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        yield Finding("runtimes", "ok", f"the default runtime {default} is there{more}")
    elif found:
        some = ", ".join(found[:8])
        yield Finding(
            "runtimes", "warning", f"there is no default runtime {default}: jobs must name one of {some}",
            "install it (runtimes.defaultEnabled=true of the chart), or set DEFAULT_TRAINING_RUNTIME",
        )  # fmt: skip
    else:
        yield Finding(
            "runtimes", "wrong", f"there is no runtime, neither of the cluster nor of namespace {namespace}",
            "ask an admin to install them: runtimes.defaultEnabled=true of the chart (docs/install.md)",
        )  # fmt: skip


def _rights(cluster: Cluster, namespace: str) -> Iterator[Finding]:
    if cluster.namespace is False:
        remedy = "create it, or name another with --namespace"
        yield Finding("rights", "wrong", f"there is no namespace {namespace}", remedy)
    rights = cluster.rights
    if isinstance(rights, Unseen):
        text = f"what you may do cannot be asked: {rights.detail}"
        yield Finding("rights", "unknown", text, "ask an admin for the ClusterRole system:basic-user")
        return
    has_kueue = not isinstance(cluster.served.get(WORKLOADS.api_version), Unseen)
    allowed = []
    for deed in (*DEEDS, *QUEUE_DEEDS) if has_kueue else DEEDS:
        denied = [str(right) for right in deed.rights if not rights.get(right)]
        if denied:
            yield _denied(deed, denied, namespace)
        else:
            allowed.append(deed.name)
    if allowed:
        yield Finding("rights", "ok", f"in namespace {namespace} you may {'; '.join(allowed)}")


def _denied(deed: Deed, denied: list[str], namespace: str) -> Finding:
    text = f"you may not {deed.name} in namespace {namespace}: {', '.join(denied)}"
    remedy = "ask an admin for a Role with these verbs and resources, and a RoleBinding to you"
    return Finding("rights", "wrong" if deed.needed else "warning", text, remedy)
