"""The facts of a cluster, read under the caller's own rights, at the same time.

Nothing is changed: the one TrainJob that is created is a dry run, and what is asked about rights is answered and not
kept. What cannot be read becomes `Unseen`; a cluster that does not answer becomes the facts' `trouble`.
"""

from __future__ import annotations

import asyncio
import base64
import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.kubernetes.failures import denied_right, silent_webhook, words_of
from trainplane.client.doctor.facts import (
    DEEDS,
    ENGINES,
    NEEDED,
    QUEUE_DEEDS,
    Access,
    Cluster,
    Right,
    Trial,
    Unseen,
    Webhook,
)
from trainplane.kube.access import reviewed
from trainplane.kube.codec import decode
from trainplane.kube.errors import ApiError, ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.kube.resource import Resource
from trainplane.kube.validity import certificate_end, certificate_ends, token_end
from trainplane.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    DEPLOYMENTS,
    HUB_TRAIN_JOBS,
    LOCAL_QUEUES,
    MULTIKUEUE_CLUSTERS,
    NAMESPACES,
    SELF_SUBJECT_ACCESS_REVIEWS,
    SERVICES,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    WORKLOADS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from trainplane.api.tree import Tree
    from trainplane.client.doctor.facts import Deed, Objects
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config

_REGISTRATION: Final = ("admissionregistration.k8s.io", "v1")
_CONFIGURATIONS: Final = (
    Resource(*_REGISTRATION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False),
    Resource(*_REGISTRATION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
)
_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
_TAG: Final = re.compile(r":(v?\d+\.\d+[^@:/]*)(@|$)")
_TRIAL: Final = "trainplane-doctor-trial"
_LONGEST: Final = 300
"""Characters of what others say that are passed on."""


async def read_access(config: Config) -> Access:
    """Return how a cluster is reached, and when the credentials end. Raises KubeError if there are none."""
    credential = await config.credentials.current()
    certificate = credential.certificate[0] if credential.certificate else config.tls.certificate
    if isinstance(certificate, Path):
        certificate = certificate.read_text(encoding="utf-8", errors="ignore") if certificate.is_file() else None
    scheme, _, token = (credential.authorization or "").partition(" ")
    return Access(
        server=config.address,
        context=config.context,
        namespace=config.namespace,
        certificate_end=certificate_end(certificate),
        token_end=token_end(token) if scheme == "Bearer" else None,
    )


async def read_cluster(client: Client, namespace: str, runtime: str, clock: Clock) -> Cluster:
    """Return what is to be known of a cluster. Raises KubeError if it does not answer at all."""
    answer = await client.raw("GET", "/version")
    version = decode(answer.body, dict)
    apis = (*NEEDED, WORKLOADS.api_version, HUB_TRAIN_JOBS.api_version)
    definitions = [f"{one.plural}.{one.group}" for needed in NEEDED.values() for one in needed]
    (served, crds, webhooks, there), (shared, own, quotas, queues, workers) = await asyncio.gather(
        asyncio.gather(
            asyncio.gather(*(_served(client, api) for api in apis)),
            asyncio.gather(*(_object(client, _DEFINITIONS, name) for name in definitions)),
            _webhooks(client),
            _is_there(client, namespace),
        ),
        asyncio.gather(
            _names(client, CLUSTER_TRAINING_RUNTIMES, None),
            _names(client, TRAINING_RUNTIMES, namespace),
            _objects(client, _QUOTAS, namespace),
            _objects(client, LOCAL_QUEUES, namespace),
            _objects(client, MULTIKUEUE_CLUSTERS, None),
        ),
    )
    runtimes = _together(shared, own)
    has_kueue = not isinstance(served[len(NEEDED)], Unseen)
    rights, trial, engines = await asyncio.gather(
        _rights(client, namespace, (*DEEDS, *QUEUE_DEEDS) if has_kueue else DEEDS),
        _try(client, namespace, runtime, runtimes, own),
        _engines(client, () if isinstance(webhooks, Unseen) else webhooks),
    )
    return Cluster(
        version=str(version.get("gitVersion") or "of an unknown version")[:_LONGEST],
        ahead=_ahead(answer.headers.get("Date"), clock.now()),
        namespace=there,
        served=dict(zip(apis, served, strict=True)),
        definitions=dict(zip(definitions, crds, strict=True)),
        engines=engines,
        webhooks=webhooks,
        runtimes=runtimes,
        queues=queues,
        quotas=quotas,
        workers=workers if isinstance(workers, Unseen) else len(workers),
        rights=rights,
        trial=trial,
    )


def _ahead(said: str | None, now: datetime) -> timedelta | None:
    try:
        told = parsedate_to_datetime(said) if said else None
    except ValueError:
        return None
    return None if told is None else (told if told.tzinfo else told.replace(tzinfo=UTC)) - now


def _unseen(error: KubeError) -> Unseen:
    if isinstance(error, NotFoundError):
        return Unseen("missing", "the cluster does not have it")
    if isinstance(error, ForbiddenError | UnauthorizedError):
        denied = denied_right(error)
        return Unseen("forbidden", f"you may not {denied}" if denied else str(error)[:_LONGEST])
    return Unseen("failed", str(error)[:_LONGEST])


class _Named(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Named] | None = None


async def _served(client: Client, api: str) -> frozenset[str] | Unseen:
    try:
        answer = await client.raw("GET", f"/apis/{api}")
        return frozenset(one.name for one in decode(answer.body, _ResourceList).resources or ())
    except KubeError as error:
        return _unseen(error)


async def _object(client: Client, resource: Resource, name: str, namespace: str | None = None) -> Tree | Unseen:
    try:
        return await client.get(resource, name, namespace)
    except KubeError as error:
        return _unseen(error)


async def _objects(client: Client, resource: Resource, namespace: str | None, **selectors: Any) -> Objects:
    try:
        return await client.list_all(resource, namespace, **selectors)
    except KubeError as error:
        return _unseen(error)


async def _is_there(client: Client, namespace: str) -> bool | Unseen:
    found = await _object(client, NAMESPACES, namespace)
    if isinstance(found, Unseen):
        return False if found.why == "missing" else found
    return True


async def _names(client: Client, resource: Resource, namespace: str | None) -> Sequence[str] | Unseen:
    found = await _objects(client, resource, namespace)
    if isinstance(found, Unseen):
        return found
    return sorted(name for one in found if (name := trees.text(one, "metadata", "name")))


def _together(shared: Sequence[str] | Unseen, own: Sequence[str] | Unseen) -> Sequence[str] | Unseen:
    """Return the names of both; what one of them hides is not hidden by what the other shows."""
    if isinstance(shared, Unseen):
        return own if own and not isinstance(own, Unseen) else shared
    return sorted({*shared, *(() if isinstance(own, Unseen) else own)})


async def _webhooks(client: Client) -> Sequence[Webhook] | Unseen:
    found = await asyncio.gather(*(_objects(client, resource, None) for resource in _CONFIGURATIONS))
    hooks = []
    for listed in found:
        if isinstance(listed, Unseen):
            return listed
        for one in listed:
            hooks += [(one, hook, groups) for hook in trees.entries(one, "webhooks") if (groups := _reviews(hook))]
    services = {service for _, hook, _ in hooks if (service := _service(hook))}
    ready = dict(zip(services, await asyncio.gather(*(_endpoints(client, one) for one in services)), strict=True))
    return [_webhook(one, hook, groups, ready) for one, hook, groups in hooks]


def _reviews(hook: Tree) -> frozenset[str]:
    """Return the groups of ours that a webhook reviews."""
    groups = (group for rule in trees.entries(hook, "rules") for group in rule.get("apiGroups") or ())
    return frozenset(map(str, groups)) & ENGINES.keys()


def _service(hook: Tree) -> tuple[str, str] | None:
    namespace, name = (trees.text(hook, "clientConfig", "service", key) for key in ("namespace", "name"))
    return (namespace, name) if namespace and name else None


async def _endpoints(client: Client, service: tuple[str, str]) -> int | Unseen:
    namespace, name = service
    there = await _object(client, SERVICES, name, namespace)
    if isinstance(there, Unseen):
        return there
    found = await _objects(client, _SLICES, namespace, labels={"kubernetes.io/service-name": name})
    if isinstance(found, Unseen):
        return found
    endpoints = (one for each in found for one in trees.entries(each, "endpoints"))
    return sum(trees.get(one, "conditions", "ready") is not False for one in endpoints)


def _webhook(
    configuration: Tree, hook: Tree, groups: frozenset[str], ready: dict[tuple[str, str], int | Unseen]
) -> Webhook:
    service = _service(hook)
    try:
        bundle = base64.b64decode(trees.text(hook, "clientConfig", "caBundle") or "").decode("ascii", "ignore")
    except ValueError:
        bundle = ""
    ends = certificate_ends(bundle)
    return Webhook(
        configuration=trees.text(configuration, "metadata", "name") or "",
        name=trees.text(hook, "name") or "",
        groups=groups,
        fails_closed=trees.text(hook, "failurePolicy") != "Ignore",
        service="/".join(service) if service else "",
        endpoints=ready[service] if service else None,
        authorities=len(ends),
        authority_end=max(ends, default=None),
    )


async def _engines(client: Client, webhooks: Iterable[Webhook]) -> dict[str, str]:
    """Return versions by the tags of images: what a webhook's Service stands for runs in a Deployment beside it."""
    places = {}
    for hook in webhooks:
        for group in hook.groups:
            if hook.service and len(hook.groups) == 1:
                places[ENGINES[group]] = hook.service.partition("/")[0]
    found = await asyncio.gather(*(_objects(client, DEPLOYMENTS, namespace) for namespace in places.values()))
    told = {}
    for owner, listed in zip(places, found, strict=True):
        for one in () if isinstance(listed, Unseen) else listed:
            name = trees.text(one, "metadata", "name") or ""
            containers = trees.entries(one, "spec", "template", "spec", "containers")
            tags = (_TAG.search(str(each.get("image") or "")) for each in containers)
            tag = next((each[1] for each in tags if each), "")
            if tag and name.endswith("controller-manager"):
                told[owner] = tag
    return told


async def _rights(client: Client, namespace: str, deeds: Iterable[Deed]) -> dict[Right, bool] | Unseen:
    asked = list(dict.fromkeys(right for deed in deeds for right in deed.rights))
    try:
        answers = await asyncio.gather(*(_may(client, right, namespace) for right in asked))
    except KubeError as error:
        return _unseen(error)
    return dict(zip(asked, answers, strict=True))


async def _may(client: Client, right: Right, namespace: str) -> bool:
    resource, verb, subresource = right
    attributes = {
        "group": resource.group,
        "resource": resource.plural,
        "subresource": subresource,
        "verb": verb,
        **({"namespace": namespace} if resource.namespaced else {}),
    }
    status = await reviewed(client, SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": attributes})
    return bool(status.get("allowed"))


async def _try(
    client: Client,
    namespace: str,
    runtime: str,
    runtimes: Sequence[str] | Unseen,
    own: Sequence[str] | Unseen,
) -> Trial | None:
    """Create a TrainJob for trial: the whole way through the API server, its policies and all webhooks."""
    if isinstance(runtimes, Unseen) or not runtimes:
        return None
    name = runtime if runtime in runtimes else runtimes[0]
    kind = TRAINING_RUNTIMES if not isinstance(own, Unseen) and name in own else CLUSTER_TRAINING_RUNTIMES
    job = {
        "apiVersion": names.API_VERSION,
        "kind": names.TRAIN_JOB,
        "metadata": {"name": _TRIAL, "namespace": namespace},
        "spec": {
            "runtimeRef": {"apiGroup": names.GROUP, "kind": kind.kind, "name": name},
            "trainer": {"command": ["true"]},
        },
    }
    try:
        await client.create(TRAIN_JOBS, job, namespace, dry_run=True, type_=bytes)
    except ApiError as error:
        words = words_of(error)[:_LONGEST]
        if silent_webhook(error):
            return Trial(name, words, "webhook")
        if isinstance(error, NotFoundError):
            return None  # no such API, no such namespace: told where that is looked at
        return Trial(name, words, "forbidden" if denied_right(error) else "failed" if error.retryable else "refused")
    except KubeError as error:
        return Trial(name, str(error)[:_LONGEST], "failed")
    return Trial(name)
