"""The page of one TrainJob: where it stands, why, what to do; then nodes, stages, metrics, lines and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.client.display.facts import age, duration, moment, percent, progress
from trainplane.client.types.jobs import FINISHED
from trainplane.page.charts import charts
from trainplane.page.markup import Html, badge, join, section, table, tag, terms
from trainplane.page.nodes import nodes
from trainplane.page.origins import origins
from trainplane.page.stages import stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.client.types.jobs import Event, LogLine, TrainJob
    from trainplane.explain.explanation import Explanation
    from trainplane.page.look import Look

_CERTAINTY: Final = {"certain": "This is certain.", "likely": "This is likely, not certain.", "unknown": ""}


def job_page(look: Look, *, following: bool = False) -> Html:
    """Return the body of the page; `following`: a server sends more lines as they come."""
    job = look.job
    parts = [_head(look), _why(look.told)]
    parts.append(section("steps", "Nodes", nodes(job.steps), live=True))
    parts.append(section("stages", "Timeline", stages(look.stages), live=True))
    if job.progress and (job.progress.metrics or job.metrics_history):
        parts.append(section("metrics", "Metrics", charts(job), live=True))
    parts.append(_log(look.lines, following=following))
    parts.append(_events(look.events, look.earlier_events))
    if look.origins:
        parts.append(section("origins", "Where its pods come from", origins(look.origins), live=True))
    if look.unread:
        missing = tag("ul", *(tag("li", one) for one in look.unread))
        parts.append(section("unread", "What could not be read", missing, live=True))
    return tag("div", *parts)


def _head(look: Look) -> Html:
    job = look.job
    title = tag("h1", tag("span", "TrainJob ", class_="faint"), tag("span", job.name, class_="name"))
    said = look.told.cause or look.told.summary
    state = tag("p", badge(job.status), " ", said, id="state", role="status", data_live="yes")
    took = duration(age(job, look.now))
    pairs = (
        ("runtime", job.runtime.name),
        ("nodes", str(job.num_nodes)),
        ("namespace", job.namespace),
        ("queue", job.queue or ""),
        ("cluster", job.cluster or ""),
        ("created", f"{job.creation_timestamp:%Y-%m-%d %H:%M:%S}Z"),
        ("took" if job.status in FINISHED else "age", took),
        ("output", ", ".join(one.uri for one in job.outputs)),
    )
    return join(title, state, tag("div", *_progress(job), terms(pairs), id="head", data_live="yes"))


def _progress(job: TrainJob) -> list[Html]:
    done = percent(job)
    if done is None:
        return []
    label = progress(job).partition(", ")[0] if job.status in FINISHED else _left(job)
    bar = tag("progress", f"{done} %", max="100", value=str(done), aria_label="how far the training is")
    return [tag("p", bar, tag("span", label), class_="progress")]


def _left(job: TrainJob) -> str:
    left = job.progress.remaining_seconds if job.progress else None
    told = f"{percent(job)} % done"
    return told if left is None else f"{told}, about {duration(left)} left"


def _why(told: Explanation) -> Html:
    if not told.cause:
        return section("why", "Why", tag("p", "Nothing is wrong that can be seen."), live=True)
    parts = [
        tag("p", told.summary, class_="summary"),
        tag("p", tag("b", "What to do: "), told.remedy, class_="remedy"),
        terms(
            (
                ("class of trouble", told.cause),
                ("step", told.step),
                ("pod", told.pod),
                ("machine", told.node),
                ("reason", told.reason),
                ("exit code", "" if told.exit_code is None else str(told.exit_code)),
            )
        ),
        tag("p", _CERTAINTY[told.certainty], class_="faint"),
    ]
    if told.evidence:
        seen = (tag("li", tag("b", f"{one.source}: "), one.text) for one in told.evidence)
        parts += [tag("h3", "What was seen"), tag("ul", *seen)]
    if told.log:
        parts += [tag("h3", "Its telling lines"), tag("ol", *(tag("li", line) for line in told.log), class_="lines")]
    return section("why", "Why", *parts, live=True)


def _log(lines: Sequence[LogLine], *, following: bool) -> Html:
    """Return the last lines. A live region that can be reached by keyboard: it scrolls, and says what is new."""
    shown = tag(
        "ol",
        *map(log_line, lines),
        class_="lines tall",
        id="lines",
        role="log",
        tabindex="0",
        aria_label="last lines of all steps",
    )
    said = "The last lines of all steps, in the order of time." if lines else "No step has printed anything yet."
    parts = [tag("p", said, class_="faint", id="said"), shown]
    if following:
        parts.insert(1, tag("button", "Pause", type="button", id="pause", aria_pressed="false", hidden="hidden"))
    return section("log", "Log", *parts)


def log_line(line: LogLine) -> Html:
    """Return a line with its step in front."""
    when = tag("time", f"{line.time:%H:%M:%S}") if line.time else tag("span")
    return tag("li", when, " ", tag("b", line.step), " ", tag("span", line.text))


def _events(events: Sequence[Event], earlier: int) -> Html:
    if not events:
        return section(
            "events", "Events", tag("p", "Nothing was told, or it is too long ago.", class_="faint"), live=True
        )
    rows = (
        (
            f"{moment(event):%Y-%m-%d %H:%M:%S}Z",
            badge("Warning") if event.type == "Warning" else "",
            event.reason,
            f"{event.involved_object_kind} {event.involved_object_name}",
            event.cluster or "",
            str(event.count) if event.count > 1 else "",
            event.message,
        )
        for event in events
    )
    headers = ("time", "kind", "reason", "object", "cluster", "times", "message")
    left = [tag("p", f"and {earlier} earlier events", class_="faint")] if earlier else []
    return section("events", "Events", table("What happened, in the order of time", headers, rows), *left, live=True)
