"""`trainplane explain`: why a TrainJob failed, waits or stands still, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.cli.output import Output
from trainplane.cli.trainjob import add_connection, collect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from datetime import timedelta

    from trainplane.api.trainjob import Milestone
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

_DESCRIPTION = """\
Say what is the matter with a TrainJob: the first fault and not the cascade behind it, with its step, pod and node, the
evidence, and what to do; and when it reached each stage of its life. Looks at the TrainJob and all that it is made of,
at events and at the last lines of all steps, as far as you may read them; or, with --bundle, at a file that
`trainplane bundle` wrote. Reads only.
"""
_EPILOG = "Exit code: 0 nothing is wrong; 1 something is; 2 the TrainJob or the file cannot be read."
_BAR = 20
"""Letters of the longest bar."""
_COLOURS = {"certain": "red", "likely": "yellow", "unknown": "yellow"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "explain", help="say why a TrainJob failed or does not get on", description=_DESCRIPTION, epilog=_EPILOG
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("job", metavar="JOB", nargs="?", help="the TrainJob")
    which.add_argument("--bundle", metavar="FILE", help="explain what is in a bundle; no cluster is asked")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="for people or for programs")
    add_connection(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Look, print, return the exit code."""
    from datetime import UTC, datetime  # noqa: PLC0415 rare

    from trainplane.api import document  # noqa: PLC0415 heavy
    from trainplane.explain.explain import explain  # noqa: PLC0415 heavy
    from trainplane.explain.timeline import spans, timeline_of  # noqa: PLC0415 heavy

    facts = _read(given.bundle) if given.bundle else collect(given)
    if facts is None:
        return 2
    told = explain(facts, datetime.now(UTC))
    timeline = timeline_of(facts)
    output = Output(sys.stdout)
    if given.output == "json":
        output.json({**told.tree(), "timeline": [document.to_tree(one) for one in timeline]})
    else:
        show(told, output)
        show_timeline(spans(timeline, facts.job), output)
    return 1 if told.cause else 0


def show(told: Explanation, output: Output) -> None:
    """Print an explanation for people."""
    if not told.cause:
        output.line(told.summary, colour="green")
        return
    output.item("✗", _COLOURS[told.certainty], "", told.summary, indent=0)
    output.item("→", "cyan", "", told.remedy, indent=2)
    output.item(" ", "", "class: ", f"{told.cause} ({told.certainty}); see docs/troubleshooting.md", indent=2)
    for one in told.evidence:
        output.item("·", "", f"{one.source}: ", one.text, indent=2)
    if told.log:
        output.line("")
        for line in told.log:
            output.line(f"    {line}")


def show_timeline(stages: Sequence[tuple[Milestone, timedelta]], output: Output) -> None:
    """Print when each stage was reached, how long it took, and a bar by which the longest is found."""
    longest = max((took.total_seconds() for _, took in stages), default=0.0)
    if not stages:
        return
    output.line("")
    for one, took in stages:
        bar = "▇" * round(_BAR * took.total_seconds() / longest) if longest else ""
        again = f" {one.number}" if one.number else ""
        when = f"{one.time:%Y-%m-%d %H:%M:%S}Z"
        output.line(f"  {one.stage + again:<14} {when}  {span(took):>9}  {bar:<{_BAR}}  {one.reason}".rstrip())


def span(took: timedelta) -> str:
    """Return how long something took, as people say it."""
    seconds = int(took.total_seconds())
    if seconds < 120:
        return f"+{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    return f"+{minutes}m{seconds:02}s" if minutes < 120 else f"+{minutes // 60}h{minutes % 60:02}m"


def _read(name: str) -> Facts | None:
    from trainplane.explain.bundle import MOST_BYTES, read_bundle  # noqa: PLC0415 heavy

    try:
        with Path(name).open(encoding="utf-8") as file:
            return read_bundle(file.read(MOST_BYTES + 1))
    except (OSError, ValueError) as error:
        Output(sys.stderr).line(f"trainplane: cannot read {name}: {error}")
        return None
