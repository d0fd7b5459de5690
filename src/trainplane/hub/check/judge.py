"""The fleet check: what would stop a job on each worker, said before one is sent.

    gather (check_gather) ──► Facts ──► judge ──► Report

`judge` is pure: all that it says follows from the facts. One module judges one matter: `check_dispatch` the hub's way
from queues to workers, `check_cluster` connection, credentials and versions, `check_runtimes` what must be alike,
`check_kinds` what kinds beside TrainJobs need, `check_queues` where a job would land, `check_trainjob` one job's way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.check.cluster import judge_connection, judge_credentials, judge_versions
from trainplane.hub.check.dispatch import Dispatch, trace
from trainplane.hub.check.gather import gather
from trainplane.hub.check.kinds import judge_kinds
from trainplane.hub.check.needs import Needs, needs_of
from trainplane.hub.check.queues import judge_namespaces, judge_queues
from trainplane.hub.check.report import Check, ClusterReport, Report
from trainplane.hub.check.runtimes import judge_priorities, judge_runtimes
from trainplane.hub.check.trainjob import judge_on_hub, judge_on_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree
    from trainplane.hub.check.facts import Facts, WorkerFacts
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client


async def check(
    hub: Client, workers: Workers, *, trainjob: Tree | None = None, admin_clients: Mapping[str, Client] | None = None
) -> Report:
    """Look at a fleet and judge it; see `check_gather.gather` for the arguments and for what is raised."""
    return judge(await gather(hub, workers, trainjob=trainjob, admin_clients=admin_clients))


def judge(facts: Facts) -> Report:
    """Return what the facts mean for jobs."""
    dispatch = trace(facts.hub)
    needs = needs_of(facts.trainjob, facts.hub) if facts.trainjob is not None else None
    hub = [
        judge_versions(facts, facts.hub, is_hub=True),
        *judge_kinds(facts.hub, facts.hub, is_hub=True),
        dispatch.check(),
    ]
    if needs is not None:
        hub.append(judge_on_hub(facts, needs, dispatch))
    workers = (ClusterReport(worker.name, _worker(facts, worker, dispatch, needs)) for worker in facts.workers)
    return Report(ClusterReport("hub", tuple(hub)), tuple(workers))


def _worker(facts: Facts, worker: WorkerFacts, dispatch: Dispatch, needs: Needs | None) -> tuple[Check, ...]:
    credentials = judge_credentials(worker, facts.now)
    checks = [credentials] if worker.refusals else [judge_connection(worker), credentials]
    cluster = worker.cluster
    if cluster is None:
        return tuple(checks)
    namespaces = dispatch.namespaces(worker.name)
    checks += [
        judge_versions(facts, cluster, is_hub=False),
        *judge_kinds(facts.hub, cluster, is_hub=False),
        judge_runtimes(facts.hub, worker.name, cluster, namespaces),
        judge_namespaces(cluster, namespaces),
        judge_queues(facts.hub, cluster, dispatch.queues.get(worker.name, ())),
        judge_priorities(facts.hub, cluster, namespaces),
    ]
    if needs is not None:
        checks.append(judge_on_worker(worker, cluster, needs, dispatch))
    return tuple(checks)
