"""The fleet at a glance: what needs somebody, clusters, queues with used and free quota, devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import amount, duration
from trainplane.page.jobs import job_address
from trainplane.page.markup import Html, badge, section, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.client.types.overview import Concern, DeviceUse, Overview, QueueUse, QuotaUse, WorkerState

MOST_ROWS: Final = 1000
"""Rows of any table here: those that need attention come first."""


def fleet_page(seen: Overview, now: datetime, *, namespace: str) -> Html:
    """Return the body of the page; TrainJobs of `namespace` lead to their pages."""
    whose = f"namespace {seen.namespace}" if seen.namespace else "all namespaces"
    states = tag("p", *(_count(phase, number) for phase, number in seen.jobs.items()), class_="legend")
    parts = [
        tag("h1", "Fleet"),
        section("states", "TrainJobs", tag("p", f"Of {whose}.", class_="faint"), states, live=True),
    ]
    if seen.concerns:
        parts.append(section("concerns", "Needs a look", _concerns(seen.concerns, now, namespace), live=True))
    if seen.workers:
        parts.append(section("clusters", "Clusters", _workers(seen.workers), live=True))
    if seen.queues:
        parts.append(section("queues", "Queues", _queues(seen.queues), live=True))
    if seen.devices:
        parts.append(section("devices", "Devices", _devices(seen.devices), live=True))
    if seen.unread:
        missing = tag("ul", *(tag("li", tag("b", f"{what}: "), why) for what, why in seen.unread.items()))
        parts.append(section("unread", "What could not be read", missing, live=True))
    return tag("div", *parts)


def _count(phase: str, number: int) -> Html:
    return tag("span", badge(phase), " ", tag("b", str(number)))


def _concerns(concerns: Sequence[Concern], now: datetime, namespace: str) -> Html:
    rows = (
        (
            tag("a", one.name, href=job_address(one.name)) if one.namespace == namespace else one.name,
            one.namespace,
            badge(one.phase),
            duration(max(0.0, (now - one.since).total_seconds())),
            one.queue,
            one.reason,
        )
        for one in concerns
    )
    return table("TrainJobs that failed or do not run", ("name", "namespace", "state", "since", "queue", "why"), rows)


def _workers(workers: Sequence[WorkerState]) -> Html:
    first = sorted(workers, key=lambda one: (one.is_connected, one.name))
    rows = (
        (
            one.name,
            badge("Connected" if one.is_connected else "Lost"),
            "" if one.jobs is None else str(one.jobs),
            one.why,
        )
        for one in first[:MOST_ROWS]
    )
    return _bounded(table("Worker clusters", ("cluster", "state", "TrainJobs", "why"), rows), len(workers), "clusters")


def _queues(queues: Sequence[QueueUse]) -> Html:
    """Return the queues, one row for each of their quotas: those that are stopped or have most waiting first."""
    first = sorted(queues, key=lambda one: (one.is_active, -one.pending, one.name))
    rows = [row for queue in first[:MOST_ROWS] for row in _quota_rows(queue)][:MOST_ROWS]
    headers = ("queue", "state", "waiting", "admitted", "cohort", "flavor", "resource", "used", "share", "free", "why")
    return _bounded(table("ClusterQueues and their quota", headers, rows), len(queues), "queues")


def _quota_rows(queue: QueueUse) -> list[tuple[str, ...]]:
    state = badge("Active" if queue.is_active else "Stopped")
    begin = (queue.name, state, str(queue.pending), str(queue.admitted), queue.cohort)
    quotas = [_quota(one) for one in queue.quotas] or [("",) * 5]
    return [(*begin, *quota, queue.why) for quota in quotas]


def _quota(one: QuotaUse) -> tuple[str, ...]:
    used = f"{amount(one.resource, one.used)} of {amount(one.resource, one.nominal)}"
    return one.flavor, one.resource, used, _meter(one), amount(one.resource, one.free)


def _meter(one: QuotaUse) -> Html:
    full = one.nominal or max(one.used, 1.0)
    used = min(one.used, full)
    return tag("meter", f"{used / full:.0%}", value=f"{used / full:.4f}", aria_label=f"{used / full:.0%} used")


def _devices(devices: Sequence[DeviceUse]) -> Html:
    rows = (
        (one.resource, str(one.capacity), str(one.used), str(one.idle), str(one.waiting or ""), str(one.away or ""))
        for one in devices[:MOST_ROWS]
    )
    headers = ("device", "there", "used", "idle", "asked for by waiting pods", "on nodes that are away")
    return table("Devices of this cluster's nodes", headers, rows)


def _bounded(shown: Html, number: int, what: str) -> Html:
    if number <= MOST_ROWS:
        return shown
    return tag("div", shown, tag("p", f"and {number - MOST_ROWS} more {what}", class_="faint"))
