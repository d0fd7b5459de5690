"""Types as HTML: a card for one thing, a table for many."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from trainplane.client.display.elements import (
    AMBER,
    BLUE,
    GREEN,
    RED,
    Html,
    badge,
    bar,
    box,
    element,
    faint,
    folded,
    grid,
    mono,
    note,
    printed,
)
from trainplane.client.display.facts import age, blame, duration, nodes, percent, progress, tally, telling, trouble
from trainplane.client.display.tables import events_table, jobs_table, runtimes_table, steps_table
from trainplane.client.types.descriptions import RECENT_EVENTS, Description
from trainplane.client.types.jobs import COMPLETE, CREATED, FAILED, FINISHED, RUNNING, Cause, Event, Step, TrainJob
from trainplane.client.types.runtimes import Runtime
from trainplane.client.types.shown import html_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.client.types.descriptions import Advice, QueueAnswer

MOST_STEPS: Final = 16
"""Steps that a card lists; of a larger job those that stand out."""
MOST_ROWS: Final = 100
"""Rows of a list: a browser must show them."""


@html_of.register(TrainJob)
def job_card(job: TrainJob, now: datetime | None = None) -> Html:
    """Return a TrainJob."""
    return box(*_job_parts(job, now or datetime.now(UTC)))


@html_of.register(Description)
def description_card(told: Description, now: datetime | None = None) -> Html:
    """Return a TrainJob with why it waits and what happened to it."""
    parts = _job_parts(told.job, now or datetime.now(UTC))
    if told.queue:
        parts.append(_queue_note(told.queue))
    if told.events:
        recent = told.events[-RECENT_EVENTS:]
        title = f"{len(recent)} of {len(told.events)} events" if len(recent) < len(told.events) else "events"
        parts.append(folded(title, grid(events_table(recent)), opened=True))
    return box(*parts)


@html_of.register(Cause)
def cause_card(cause: Cause) -> Html:
    """Return why a TrainJob failed."""
    return box(_cause_note(cause, RED))


@html_of.register(Runtime)
def runtime_card(runtime: Runtime) -> Html:
    """Return a runtime."""
    command = " ".join(runtime.trainer.command)
    image = faint("image ", mono(runtime.trainer.image), " · " if command else "", mono(command) if command else "")
    return box(grid(runtimes_table([runtime])), image)


@html_of.register(Step)
def step_card(step: Step) -> Html:
    """Return a step."""
    return grid(steps_table([step]))


@html_of.register(Event)
def event_card(event: Event) -> Html:
    """Return an event."""
    return grid(events_table([event]))


def jobs_list(jobs: Sequence[TrainJob], now: datetime) -> Html:
    """Return TrainJobs, the newest if there are too many."""
    return element("div", grid(jobs_table(jobs[-MOST_ROWS:], now)), *_left_out(len(jobs), "older TrainJobs"))


def runtimes_list(runtimes: Sequence[Runtime]) -> Html:
    """Return runtimes."""
    return element("div", grid(runtimes_table(runtimes[:MOST_ROWS])), *_left_out(len(runtimes), "more runtimes"))


def events_list(events: Sequence[Event]) -> Html:
    """Return events, the last if there are too many."""
    return element("div", grid(events_table(events[-MOST_ROWS:])), *_left_out(len(events), "earlier events"))


def nothing(what: str) -> Html:
    """Return what stands for an empty list."""
    return faint(f"no {what}")


def _left_out(number: int, what: str) -> list[Html]:
    return [faint(f"and {number - MOST_ROWS} {what}")] if number > MOST_ROWS else []


def _job_parts(job: TrainJob, now: datetime) -> list[Html]:
    title = element("b", mono(job.name), style="margin-left:8px")
    parts = [element("div", badge(job.status), title), faint(" · ".join(_facts(job, now)))]
    if shown := _progress_bar(job):
        parts.append(shown)
    if job.cause:
        parts.append(_cause_note(job.cause, RED if job.status == FAILED else AMBER))
    if job.steps:
        parts.append(_steps(job.steps))
    return parts


def _facts(job: TrainJob, now: datetime) -> list[str]:
    facts = [f"{job.runtime.name} ({job.runtime.trainer.framework})"]
    facts.append(f"{job.num_nodes} node{'' if job.num_nodes == 1 else 's'}")
    if job.namespace:
        facts.append(f"namespace {job.namespace}")
    if job.queue:
        facts.append(f"queue {job.queue}")
    if job.cluster:
        facts.append(f"on {job.cluster}")
    facts.append(f"created {job.creation_timestamp:%Y-%m-%d %H:%M:%S %Z}".rstrip())
    took = duration(age(job, now))
    facts.append(f"took {took}" if job.status in FINISHED else f"{took} ago")
    return facts


def _progress_bar(job: TrainJob) -> Html | None:
    done = percent(job)
    if done is not None:
        colour = {COMPLETE: GREEN, FAILED: RED}.get(job.status, BLUE)
        return bar(100 if job.status == COMPLETE else done, progress(job), colour)
    if job.status not in {CREATED, RUNNING}:
        return None
    running, wanted = nodes(job)
    return bar(100 * running // max(1, wanted), f"{running} of {wanted} nodes run", BLUE)


def _cause_note(cause: Cause, colour: str) -> Html:
    told = [element("div", element("b", blame(cause).partition(":")[0]), f": {telling(cause)}")]
    if cause.log_tail:
        told.append(folded("its last lines", printed(cause.log_tail), opened=True))
    return note(colour, *told)


def _queue_note(answer: QueueAnswer) -> Html:
    of_all = f" of {answer.pending}" if answer.pending is not None else ""
    place = f" (number {answer.position}{of_all} in line)" if answer.position is not None else ""
    advice = [element("li", *_advice(one)) for one in (*answer.causes, *answer.suggestions)]
    listed = [element("ul", *advice, style="margin:4px 0 0;padding-left:20px")] if advice else []
    return note(AMBER, element("div", answer.summary + place), *listed)


def _advice(advice: Advice) -> list[str]:
    told: list[str] = [element("b", "starts it now: ")] if advice.now else []
    told.append(f"{advice.what} " if advice.do else advice.what)
    return [*told, mono(advice.do)] if advice.do else told


def _steps(steps: Sequence[Step]) -> Html:
    if len(steps) <= MOST_STEPS:
        return grid(steps_table(steps))
    usual = max({step.status for step in steps}, key=[step.status for step in steps].count)
    unusual = [step for step in steps if step.status != usual or trouble(step)]
    shown = unusual[:MOST_STEPS] or list(steps[:MOST_STEPS])
    hidden = [step for step in steps if step not in shown]
    rest = faint(f"and {len(hidden)} more steps: {tally(step.status or 'Unknown' for step in hidden)}")
    return element("div", grid(steps_table(shown)), rest)
