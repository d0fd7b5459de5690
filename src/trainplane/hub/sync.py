"""Fleet sync: the hub's runtimes, applied to the workers.

    Facts ──► compare ──► Steps ──► rehearse (dry run on each worker) ──► carry_out

`compare` is pure and says what would be done and why not; `rehearse` asks each worker's API server whether it would
take it, webhooks included; `carry_out` does it; `sync` is all of them in this order. Nothing is deleted but runtimes
that a sync made and that the hub has no longer, and only if asked.

A runtime that queued TrainJobs of a worker use is left alone unless asked, if Kueue would find other pods in it: Kueue
computes them from the runtime as it stands, again and again, and stops jobs that no longer match.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.hub import runtimes
from trainplane.hub.check.dispatch import trace
from trainplane.hub.check.facts import Unseen, each
from trainplane.hub.check.gather import gather
from trainplane.hub.check.runtimes import is_absent, wanted
from trainplane.kube.errors import KubeError
from trainplane.kube.resource import Key
from trainplane.lifecycle.conditions import conditions_of, is_finished
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS, TRAINING_RUNTIMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import Facts, WorkerFacts
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource

FIELD_MANAGER: Final = "trainplane-fleet-sync"
"""Who we are to server-side apply on workers."""
LABEL_MADE: Final = f"{names.HUB_GROUP}/made-by-sync"
"""On runtimes that a sync created: these it may delete again. One that it only changed is not its own."""

Verb: TypeAlias = Literal["create", "update", "delete", "leave"]
"""What is done with a runtime; `leave`: it should change, and does not, for the reason given."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done with one runtime on one worker."""

    worker: str
    verb: Verb
    resource: Resource
    key: Key
    body: Tree | None = None
    """What is applied."""
    diff: str = ""
    """From what the worker has to what it would have."""
    reason: str = ""
    """Why it is left, or what the worker's API server refused."""
    stops_jobs: bool = True
    """Whether Kueue would find other pods than before, and stop the jobs that use it."""
    uid: str = ""
    """Of what is deleted, so that a namesake is not."""
    done: bool = False

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What is to be done on a fleet, or was."""

    steps: tuple[Step, ...]
    equal: Mapping[str, int]
    """By worker: how many runtimes are as they should be."""
    unreachable: Mapping[str, str]
    """By worker that cannot be judged: why."""

    @property
    def settled(self) -> bool:
        """Whether the workers have what they should have, for all that is known."""
        return not self.unreachable and all(step.done for step in self.steps)


InUse: TypeAlias = "Mapping[str, Iterable[Tree]]"
"""By worker: its TrainJobs."""


async def sync(
    hub: Client,
    workers: Workers,
    *,
    admin_clients: Mapping[str, Client] | None = None,
    apply: bool = False,
    prune: bool = False,
    even_in_use: bool = False,
) -> SyncReport:
    """Make the workers' runtimes those of the hub, or without `apply` say what that would be.

    `admin_clients` are clients to work on workers with, by their names, where MultiKueue's own credentials may not.
    Raises KubeError and HubError for what the hub refuses; what a worker refuses is in the report.
    """
    facts = await gather(hub, workers, admin_clients=admin_clients)
    reached = [worker.name for worker in facts.workers if worker.cluster is not None]
    clients = {name: (admin_clients or {}).get(name) or await workers.client(name) for name in reached}
    jobs = dict(zip(reached, await asyncio.gather(*map(_jobs, clients.values())), strict=True))
    report = compare(facts, jobs, prune=prune, even_in_use=even_in_use)
    steps = await rehearse(report.steps, clients)
    return replace(report, steps=await carry_out(steps, clients) if apply else steps)


def compare(facts: Facts, jobs: InUse, *, prune: bool = False, even_in_use: bool = False) -> SyncReport:
    """Return what makes the workers' runtimes those of the hub."""
    dispatch = trace(facts.hub)
    steps: list[Step] = []
    equal: dict[str, int] = {}
    unreachable: dict[str, str] = {}
    for worker in facts.workers:
        why = _blindness(worker)
        if why:
            unreachable[worker.name] = why
            continue
        namespaces = dispatch.namespaces(worker.name)
        found = list(_steps(facts, worker, namespaces, prune=prune))
        equal[worker.name] = sum(1 for _ in wanted(facts.hub, namespaces)) - sum(
            step.verb != "delete" for step in found
        )
        used = users(jobs.get(worker.name, ()))
        steps += [_spare(step, used, even_in_use=even_in_use) for step in found]
    return SyncReport(tuple(steps), equal, unreachable)


def users(jobs: Iterable[Tree]) -> dict[tuple[str, Key], list[str]]:
    """Return the unfinished TrainJobs that Kueue counts, by the runtime that they name: its kind and key.

    Others began with a snapshot of their runtime and go on with it.
    """
    used: dict[tuple[str, Key], list[str]] = {}
    for job in jobs:
        if is_finished(conditions_of(job)) or not trees.get(job, "metadata", "labels", names.LABEL_QUEUE):
            continue
        ref = trees.get(job, "spec", "runtimeRef") or {}
        kind = ref.get("kind") or names.CLUSTER_TRAINING_RUNTIME
        namespace = job["metadata"]["namespace"]
        key = Key(namespace if kind == names.TRAINING_RUNTIME else "", str(ref.get("name")))
        used.setdefault((kind, key), []).append(f"{namespace}/{job['metadata']['name']}")
    return used


async def rehearse(steps: Iterable[Step], clients: Mapping[str, Client]) -> tuple[Step, ...]:
    """Ask each worker whether it would take the steps; one that it refuses is left, with what it said."""
    return tuple([await _attempt(step, clients[step.worker], dry_run=True) for step in steps])


async def carry_out(steps: Sequence[Step], clients: Mapping[str, Client]) -> tuple[Step, ...]:
    """Do the steps; one that is refused is left, and the others are done."""
    return tuple([await _attempt(step, clients[step.worker], dry_run=False) for step in steps])


async def _jobs(client: Client) -> list[Tree]:
    """Return a worker's TrainJobs; what cannot be seen is taken for unused, as the refusal of a write will tell."""
    try:
        return await client.list_all(TRAIN_JOBS)
    except KubeError:
        return []


def _blindness(worker: WorkerFacts) -> str:
    """Return why a worker's runtimes cannot be judged."""
    if worker.cluster is None:
        return worker.trouble or "it does not answer"
    unseen = [worker.cluster.of(resource) for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)]
    return next((found.detail for found in unseen if isinstance(found, Unseen)), "")


def _steps(facts: Facts, worker: WorkerFacts, namespaces: tuple[str, ...], *, prune: bool) -> Iterator[Step]:
    cluster = worker.cluster
    if cluster is None:
        return
    on_hub = set()
    for resource, key, runtime in wanted(facts.hub, namespaces):
        on_hub.add((resource, key))
        there = cluster.seen(resource).get(key)
        diff = runtimes.diff(there, runtime, worker.name, "hub")
        if there is None:
            step = Step(worker.name, "create", resource, key, _body(runtime, made=True), diff)
            if is_absent(cluster, key.namespace):
                reason = f"namespace {key.namespace} does not exist there: create it first"
                step = replace(step, verb="leave", reason=reason)
            yield step
        elif diff:
            made = LABEL_MADE in (trees.get(there, "metadata", "labels") or {})
            alike = runtimes.would_run_alike(runtime, there)
            yield Step(worker.name, "update", resource, key, _body(runtime, made=made), diff, stops_jobs=not alike)
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES) if prune else ():
        for key, there in each(cluster, resource):
            made = LABEL_MADE in (trees.get(there, "metadata", "labels") or {})
            gone = key not in facts.hub.seen(resource) and not isinstance(facts.hub.of(resource), Unseen)
            if made and gone:
                diff = runtimes.diff(there, None, worker.name, "hub")
                yield Step(worker.name, "delete", resource, key, diff=diff, uid=there["metadata"].get("uid") or "")


def _body(runtime: Tree, *, made: bool) -> Tree:
    body = runtimes.shared(runtime)
    labels = {**(body["metadata"].get("labels") or {}), **({LABEL_MADE: "true"} if made else {})}
    return trees.put(body, "metadata", "labels", value=labels) if labels else body


def _spare(step: Step, used: Mapping[tuple[str, Key], list[str]], *, even_in_use: bool) -> Step:
    jobs = used.get((step.resource.kind, step.key), [])
    if not jobs or step.verb not in {"update", "delete"} or not step.stops_jobs or even_in_use:
        return step
    some = ", ".join(jobs[:3]) + (f" and {len(jobs) - 3} more" if len(jobs) > 3 else "")
    reason = f"queued or running TrainJobs there use it ({some}), and Kueue would stop them: wait, or --even-in-use"
    return replace(step, verb="leave", reason=reason)


async def _attempt(step: Step, client: Client, *, dry_run: bool) -> Step:
    if step.verb == "leave":
        return step
    try:
        if step.verb == "delete":
            if not dry_run:
                await client.delete(
                    step.resource, step.key.name, step.key.namespace or None, preconditions_uid=step.uid
                )
        else:
            await _apply(step, client, dry_run=dry_run)
    except KubeError as error:
        return replace(step, verb="leave", reason=f"the worker refuses it: {error}")
    return replace(step, done=not dry_run)


async def _apply(step: Step, client: Client, *, dry_run: bool) -> None:
    """Apply, and where fields of other managers stay behind that the hub's runtime does not have, replace the spec."""
    body = step.body or {}
    applied = await client.apply(step.resource, body, field_manager=FIELD_MANAGER, dry_run=dry_run)
    if not dry_run and not runtimes.equal({"kind": step.resource.kind, **applied}, body):
        own = runtimes.own_marks(applied)
        marks = {kind: own[kind] | (trees.get(body, "metadata", kind) or {}) for kind in runtimes.MARKS}
        whole = {**applied, "metadata": {**applied["metadata"], **marks}, "spec": body["spec"]}
        await client.replace(step.resource, whole, field_manager=FIELD_MANAGER)
