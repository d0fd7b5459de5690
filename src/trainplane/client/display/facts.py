"""What is shown of a TrainJob and does not stand in it: how many nodes run, how far it is, how long it took."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from trainplane.client.types.jobs import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from trainplane.client.types.jobs import Cause, Event, Step, TrainJob

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STARTED: Final = frozenset({"Running", "Succeeded"})
_UNPRINTABLE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def nodes(job: TrainJob) -> tuple[int, int]:
    """Return how many nodes run or ran to their end, and how many there are to be."""
    training = [step for step in job.steps if step.name.startswith("node-")]
    return sum(step.status in _STARTED for step in training), max(job.num_nodes, len(training))


def percent(job: TrainJob) -> int | None:
    """Return how far the training is, as it says itself; None where it does not."""
    told = job.progress.percent if job.progress else None
    return None if told is None else max(0, min(100, told))


def age(job: TrainJob, now: datetime) -> float:
    """Return the seconds since a TrainJob was created, or that it took; never less than nothing, as clocks differ."""
    end = job.finished if job.status in FINISHED and job.finished else now
    return max(0.0, (end - job.creation_timestamp).total_seconds())


def duration(seconds: float) -> str:
    """Return a time as people do: with two units at most."""
    whole = int(seconds)
    if whole < 2 * MINUTE:
        return f"{whole} s"
    if whole < 2 * HOUR:
        return f"{whole // MINUTE} min"
    if whole < 2 * DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def amount(resource: str, value: float) -> str:
    """Return an amount of a resource as people write it: memory in binary units, the rest as it is."""
    if "memory" not in resource and "storage" not in resource:
        return f"{value:g}" if value < 1e6 else f"{value:.3g}"
    unit = 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.4g}{_UNITS[unit]}"


def progress(job: TrainJob) -> str:
    """Return how far a training is, as it says itself; empty where it says nothing."""
    if job.progress is None:
        return ""
    done, left = percent(job), job.progress.remaining_seconds
    told = [] if done is None else [f"{done} % done"]
    if left is not None and job.status not in FINISHED:
        told.append(f"about {duration(left)} left")
    return ", ".join([*told, *(f"{name} {value}" for name, value in job.progress.metrics.items())])


def blame(cause: Cause) -> str:
    """Return a cause in one line, without log lines: `OOMKilled in node-1 (exit code 137): …`."""
    where = f" in {cause.step}" if cause.step else ""
    code = f" (exit code {cause.exit_code})" if cause.exit_code is not None else ""
    return f"{cause.reason}{where}{code}: {telling(cause)}"


def telling(cause: Cause) -> str:
    """Return what a cause says; where that is to look at the log, the line of the log that tells it."""
    last = next((line.strip() for line in reversed(cause.log_tail) if line.strip()), "")
    return last if last and cause.message.endswith("see its log") else cause.message


def trouble(step: Step) -> str:
    """Return why a step waits or failed; empty where nothing is wrong."""
    code = f"exit code {step.exit_code}" if step.exit_code else ""
    reason = f"{step.reason} ({code})" if step.reason and code else step.reason or code
    return ": ".join(part for part in (reason, step.message) if part)


def devices(device: str, count: str) -> str:
    """Return what computes: `4 gpu`; empty where it is not known."""
    known = [word for word in (count, device) if word != "Unknown"]
    return " ".join(known) if device != "Unknown" else ""


def moment(event: Event) -> datetime:
    """Return when an event happened last."""
    return event.last_time or event.event_time


def tally(words: Iterable[str]) -> str:
    """Count equal words: `500 Running, 12 Pending`, the most first."""
    return ", ".join(f"{number} {word}" for word, number in Counter(words).most_common())


def printable(text: str) -> str:
    """Return a text without terminal sequences and control characters; newlines and tabs stay."""
    return _UNPRINTABLE.sub("", text)
