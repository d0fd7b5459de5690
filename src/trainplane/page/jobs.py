"""The list of TrainJobs: newest first, found by a word, never more than a browser can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from trainplane.client.display.facts import age, blame, duration, nodes, percent, tally
from trainplane.client.types.jobs import COMPLETE
from trainplane.page.markup import Html, badge, section, table, tag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from trainplane.client.types.jobs import TrainJob

MOST_JOBS: Final = 1000
_HEADERS: Final = ("name", "state", "runtime", "nodes", "done", "age", "took", "queue", "cluster", "why")


def jobs_page(jobs: Sequence[TrainJob], now: datetime, *, namespace: str, wanted: str = "") -> Html:
    """Return the body of the page: those TrainJobs in which each wanted word stands."""
    words = wanted.casefold().split()
    found = [job for job in reversed(jobs) if all(word in _searched(job) for word in words)]
    head = tag("h1", "TrainJobs of ", tag("span", namespace, class_="name"))
    counted = tag("p", _counted(found, len(jobs), wanted), role="status", id="counted", data_live="yes")
    if not found:
        nothing = "None has these words." if jobs else "There are none: `trainplane run` starts one."
        return tag("div", head, _search(wanted), counted, tag("p", nothing, id="list", data_live="yes"))
    shown = found[:MOST_JOBS]
    rows = table("TrainJobs, newest first", _HEADERS, (_row(job, now) for job in shown))
    left = [tag("p", f"and {len(found) - MOST_JOBS} older ones: search for a word")] if len(found) > MOST_JOBS else []
    return tag("div", head, _search(wanted), counted, section("list", "List", rows, *left, live=True))


def job_address(name: str) -> str:
    """Return where the page of a TrainJob is."""
    return f"/jobs/{quote(name, safe='')}"


def _searched(job: TrainJob) -> str:
    return f"{job.name} {job.status} {job.runtime.name} {job.queue} {job.cluster}".casefold()


def _counted(found: Sequence[TrainJob], number: int, wanted: str) -> str:
    states = tally(job.status for job in found)
    if wanted:
        return f"{len(found)} of {number} TrainJobs" + (f": {states}" if states else "")
    return f"{number} TrainJobs" + (f": {states}" if states else "")


def _search(wanted: str) -> Html:
    label = tag("label", "Name, state, runtime, queue or cluster", for_="wanted")
    field = tag("input", type="search", name="q", id="wanted", value=wanted, maxlength="200")
    return tag(
        "form", label, field, tag("button", "Search", type="submit"), role="search", action="/jobs", method="get"
    )


def _row(job: TrainJob, now: datetime) -> tuple[str, ...]:
    done = percent(job)
    return (
        tag("a", job.name, href=job_address(job.name)),
        badge(job.status),
        job.runtime.name,
        "{}/{}".format(*nodes(job)),
        "" if done is None or job.status == COMPLETE else f"{done} %",
        duration((now - job.creation_timestamp).total_seconds()),
        duration(age(job, now)) if job.finished else "",
        job.queue or "",
        job.cluster or "",
        blame(job.cause) if job.cause else "",
    )
