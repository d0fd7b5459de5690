"""The facts of a fleet check, read from hub and workers at the same time.

Reads only, and of Secrets only whether they are there. What cannot be read becomes `Unseen`, what cannot be reached
becomes the worker's `trouble`; only the hub's own refusals are raised.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import yaml

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub.check.facts import (
    COMPARED,
    LEGACY,
    NEEDED,
    OF_THE_HUB,
    PERMISSIONS,
    VIEW_PERMISSIONS,
    ClusterFacts,
    Facts,
    Unseen,
    WorkerFacts,
    permissions_for,
)
from trainplane.hub.check.kinds import legacy_kinds
from trainplane.hub.check.needs import located, needs_of
from trainplane.hub.errors import NoSuchJobError, NoSuchWorkerError, NotAHubError, WorkerCredentialsError
from trainplane.hub.kinds import TRAIN_JOB
from trainplane.hub.kubeconfigs import judge
from trainplane.hub.workers import ordered
from trainplane.kube.clock import SystemClock
from trainplane.kube.codec import decode, key_of
from trainplane.kube.errors import ForbiddenError, KubeError, NotFoundError, UnauthorizedError
from trainplane.resources import (
    ADMISSION_CHECKS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    MULTIKUEUE_CLUSTERS,
    MULTIKUEUE_CONFIGS,
    SELF_SUBJECT_ACCESS_REVIEWS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import Objects, Permission, Reference
    from trainplane.hub.check.needs import Needs
    from trainplane.hub.kinds import JobKind
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.resource import Resource

_PARTIAL: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Asks for an object without its content."""
_ENGINES: Final = {
    "Kueue": ("", "kueue-controller-manager"),
    "JobSet": ("jobset-system", "jobset-controller-manager"),
    "Trainer": ("kubeflow-system", "kubeflow-trainer-controller-manager"),
}
"""What is installed where by its own manifests; Kueue's namespace is a setting."""
_KUEUE_CONFIGURATION: Final = "kueue-manager-config"
_TAG: Final = re.compile(r":(v?\d+\.\d+[^@:/]*)(@|$)")


async def gather(
    hub: Client,
    workers: Workers,
    *,
    trainjob: Tree | None = None,
    admin_clients: Mapping[str, Client] | None = None,
    clock: Clock | None = None,
) -> Facts:
    """Read everything that the check judges.

    `admin_clients` are clients to look at workers with, by their names, where MultiKueue's own credentials see too
    little; what MultiKueue may do is asked with MultiKueue's all the same. Raises KubeError for what the hub refuses,
    NotAHubError, NoSuchWorkerError.
    """
    facts, frameworks = await asyncio.gather(
        look(hub, (*COMPARED, *OF_THE_HUB), kueue_namespace=workers.namespace), _frameworks(hub, workers.namespace)
    )
    facts = replace(facts, frameworks=frameworks)
    await _insist(hub, facts)
    needs = needs_of(trainjob, facts) if trainjob is not None else None
    clusters = facts.seen(MULTIKUEUE_CLUSTERS)
    in_order = ordered([*clusters.values()], [*facts.seen(MULTIKUEUE_CONFIGS).values()])
    for name in admin_clients or ():
        if name not in in_order:
            raise NoSuchWorkerError(name)
    legacy = [one for kind in legacy_kinds(facts) for one in permissions_for(kind)]
    asked = _Asked((*PERMISSIONS, *legacy), VIEW_PERMISSIONS if await _has_view(hub) else ())
    seen = await asyncio.gather(
        *(
            _worker(name, workers, needs, (admin_clients or {}).get(name), _condition(clusters, name), asked=asked)
            for name in in_order
        )
    )
    return Facts(facts, tuple(seen), trainjob, (clock or SystemClock()).now())


async def _insist(hub: Client, facts: ClusterFacts) -> None:
    """Raise if the hub does not show what every judgement begins with."""
    for resource in (MULTIKUEUE_CLUSTERS, MULTIKUEUE_CONFIGS, *COMPARED, ADMISSION_CHECKS):
        found = facts.of(resource)
        if not isinstance(found, Unseen):
            continue
        if found.why != "missing":
            await hub.list_all(resource)  # raises what kept us from seeing it
        elif resource is MULTIKUEUE_CLUSTERS:
            raise NotAHubError(facts.server)


async def job_named(hub: Client, namespace: str, name: str, kind: JobKind = TRAIN_JOB) -> Tree:
    """Return a job of the hub; raises NoSuchJobError."""
    try:
        return await hub.get(kind.resource, name, namespace)
    except NotFoundError as error:
        raise NoSuchJobError(namespace, name, kind.name) from error


async def look(cluster: Client, resources: Iterable[Resource], *, kueue_namespace: str) -> ClusterFacts:
    """Read what is to be known of one cluster. Raises KubeError if it does not answer at all."""
    version = await cluster.version()
    resources = tuple(resources)
    objects, served, others, patches, engines = await asyncio.gather(
        asyncio.gather(*(_objects(cluster, resource) for resource in resources)),
        asyncio.gather(*(_served(cluster, api) for api in (*NEEDED, *LEGACY))),
        asyncio.gather(*(_versions(cluster, api.partition("/")[0]) for api in NEEDED)),
        _runtime_patches(cluster),
        asyncio.gather(
            *(_engine(cluster, namespace or kueue_namespace, name) for namespace, name in _ENGINES.values())
        ),
    )
    return ClusterFacts(
        server=cluster.transport.config.address,
        version=str(version.get("gitVersion") or "of an unknown version"),
        engines={name: tag for name, tag in zip(_ENGINES, engines, strict=True) if tag},
        served={api: plurals for api, plurals in zip((*NEEDED, *LEGACY), served, strict=True) if plurals is not None},
        other_versions={api.partition("/")[0]: found for api, found in zip(NEEDED, others, strict=True)},
        runtime_patches=patches,
        objects=dict(zip(resources, objects, strict=True)),
    )


async def _frameworks(hub: Client, kueue_namespace: str) -> frozenset[str] | None:
    """Return what the hub's Kueue integrates, by the configuration that its manifests install; None if unseen."""
    try:
        found = await hub.get(CONFIG_MAPS, _KUEUE_CONFIGURATION, kueue_namespace)
        text = trees.get(found, "data", "controller_manager_config.yaml")
        listed = trees.get(yaml.safe_load(text) if isinstance(text, str) else None, "integrations", "frameworks")
    except (KubeError, yaml.YAMLError):
        return None
    return frozenset(map(str, listed)) if isinstance(listed, list) else None


async def _has_view(hub: Client) -> bool:
    """Return whether the hub view is installed, as far as the hub tells."""
    try:
        return bool(await _versions(hub, names.HUB_GROUP))
    except KubeError:
        return False


async def _worker(
    name: str,
    workers: Workers,
    needs: Needs | None,
    admin_client: Client | None,
    active: Tree | None,
    *,
    asked: _Asked,
) -> WorkerFacts:
    way = await _way(name, workers)
    looker = admin_client or way.client
    cluster, trouble = await _seen(looker, workers.namespace)
    permissions, view_permissions, references = await asyncio.gather(
        _permissions(way.client, asked.multikueue),
        _permissions(way.client, asked.view),
        _references(looker, cluster, needs),
    )
    return WorkerFacts(
        name=name,
        place=way.place,
        looked_as=admin_client.transport.config.context if admin_client is not None else "",
        active=active,
        refusals=way.refusals,
        token_end=way.token_end,
        certificate_end=way.certificate_end,
        trouble=way.trouble or trouble,
        cluster=cluster,
        permissions=permissions,
        view_permissions=view_permissions,
        references=references,
    )


class _Asked(NamedTuple):
    """What is asked whether it is allowed on a worker."""

    multikueue: tuple[Permission, ...]
    view: tuple[Permission, ...]


class _Way(NamedTuple):
    """How MultiKueue reaches a worker, and whether it does."""

    place: str = ""
    refusals: tuple[str, ...] = ()
    token_end: datetime | None = None
    certificate_end: datetime | None = None
    trouble: str = ""
    client: Client | None = None


async def _way(name: str, workers: Workers) -> _Way:
    try:
        source = await workers.source(name)
    except WorkerCredentialsError as error:
        return _Way(trouble=error.problem)
    judged = judge(source.text)
    way = _Way(source.place, judged.refusals, judged.token_end, judged.certificate_end)
    if way.refusals:
        return way._replace(trouble="nothing is sent there: its kubeconfig must not be used")
    try:
        client = await workers.client(name)
    except WorkerCredentialsError as error:
        return way._replace(trouble=error.problem)
    try:
        await client.version()
    except KubeError as error:
        return way._replace(trouble=_trouble(client, source.place, error))
    return way._replace(client=client)


async def _seen(admin_client: Client | None, kueue_namespace: str) -> tuple[ClusterFacts | None, str]:
    if admin_client is None:
        return None, ""
    try:
        return await look(admin_client, COMPARED, kueue_namespace=kueue_namespace), ""
    except KubeError as error:
        return None, _trouble(admin_client, f"context {admin_client.transport.config.context}", error)


def _trouble(client: Client, place: str, error: KubeError) -> str:
    server = client.transport.config.address
    if isinstance(error, UnauthorizedError):
        return f"{server} does not accept the credentials of {place} (401): they ended, or are of another cluster"
    return f"{server} does not answer: {error}"


def _condition(clusters: Mapping[Any, Tree], name: str) -> Tree | None:
    cluster = next((one for key, one in clusters.items() if key.name == name), None)
    found: Tree | None = trees.get(cluster, "status", "conditions", ("type", "Active"))
    return found


class _Named(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    """What a version of an API serves, of which a worker may say anything."""

    resources: list[_Named] | None = None


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_Version] | None = None


class _Kind(msgspec.Struct):
    kind: str = ""


class _Schema(msgspec.Struct):
    kinds: list[_Kind] | None = msgspec.field(default=None, name="x-kubernetes-group-version-kind")
    properties: Any = None


class _Schemas(msgspec.Struct):
    schemas: dict[str, _Schema] = {}


class _OpenApi(msgspec.Struct):
    components: _Schemas = msgspec.field(default_factory=_Schemas)


async def _objects(cluster: Client, resource: Resource) -> Objects:
    try:
        listed = await cluster.list_all(resource)
    except KubeError as error:
        return _unseen(error)
    identity = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {key_of(one): {**identity, **one} for one in listed}


def _unseen(error: KubeError) -> Unseen:
    if isinstance(error, NotFoundError):
        return Unseen("missing", "the cluster does not serve it")
    return Unseen("forbidden" if isinstance(error, ForbiddenError) else "failed", str(error))


async def _served(cluster: Client, api: str) -> frozenset[str] | None:
    try:
        answer = await cluster.raw("GET", f"/apis/{api}")
    except NotFoundError:
        return None
    return frozenset(resource.name for resource in decode(answer.body, _ResourceList).resources or ())


async def _versions(cluster: Client, group: str) -> tuple[str, ...]:
    try:
        answer = await cluster.raw("GET", f"/apis/{group}")
    except NotFoundError:
        return ()
    return tuple(one.version for one in decode(answer.body, _Group).versions or ())


async def _runtime_patches(cluster: Client) -> bool | Unseen:
    """Return whether TrainJobs have `spec.runtimePatches`, by the schema that everybody may read."""
    try:
        answer = await cluster.raw("GET", f"/openapi/v3/apis/{names.API_VERSION}")
        schemas = decode(answer.body, _OpenApi).components.schemas
    except KubeError as error:
        return _unseen(error)
    for schema in schemas.values():
        if any(one.kind == names.TRAIN_JOB for one in schema.kinds or ()):
            return trees.get(schema.properties, "spec", "properties", "runtimePatches") is not None
    return Unseen("missing", "the cluster has no TrainJob")


async def _engine(cluster: Client, namespace: str, name: str) -> str:
    """Return the version of what a Deployment runs, by the tag of its image; empty if that cannot be seen."""
    try:
        deployment = await cluster.get(DEPLOYMENTS, name, namespace)
    except KubeError:
        return ""
    containers = trees.get(deployment, "spec", "template", "spec", "containers") or ()
    tags = (_TAG.search(str(container.get("image") or "")) for container in containers)
    return next((tag[1] for tag in tags if tag), "")


async def _permissions(client: Client | None, asked: tuple[Permission, ...]) -> dict[Permission, bool] | Unseen:
    if client is None:
        return {}
    try:
        answers = await asyncio.gather(*(_may(client, permission) for permission in asked))
    except KubeError as error:
        return _unseen(error)
    return dict(zip(asked, answers, strict=True))


async def _may(client: Client, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    asked = {"group": permission.group, "resource": resource, "subresource": subresource, "verb": permission.verb}
    review = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": asked},
    }
    answer = await client.create(SELF_SUBJECT_ACCESS_REVIEWS, review)
    return bool(trees.get(answer, "status", "allowed"))


async def _references(
    admin_client: Client | None, cluster: ClusterFacts | None, needs: Needs | None
) -> dict[Reference, bool | Unseen]:
    if admin_client is None or cluster is None or needs is None:
        return {}
    found = await asyncio.gather(*(_exists(admin_client, reference, needs.namespace) for reference in needs.references))
    return dict(zip(needs.references, found, strict=True))


async def _exists(admin_client: Client, reference: Reference, namespace: str) -> bool | Unseen:
    resource, where = located(reference, namespace)
    try:
        await admin_client.raw("GET", resource.path(where, reference.name), accept=_PARTIAL)
    except NotFoundError:
        return False
    except KubeError as error:
        return _unseen(error)
    return True
