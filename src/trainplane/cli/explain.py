"""`trainplane explain`: why a TrainJob failed, waits or stands still, and what to do."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.completing import job_names
from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, Kubeconfig, Local, Namespace, TextOrJson, Verbose
from trainplane.cli.output import Output
from trainplane.cli.trainjob import collect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from trainplane.api.trainjob import Milestone
    from trainplane.client.types.jobs import Milestone as Reached
    from trainplane.explain.explanation import Explanation
    from trainplane.explain.facts import Facts

_BAR = 20
"""Letters of the longest bar."""
_COLOURS = {"certain": "red", "likely": "yellow", "unknown": "yellow"}

Job = Annotated[
    str | None, typer.Argument(metavar="[JOB]", help="The TrainJob.", show_default=False, autocompletion=job_names)
]
Bundle = Annotated[
    str | None,
    typer.Option(
        "--bundle", metavar="FILE", help="Explain what is in a bundle; no cluster is asked.", show_default=False
    ),
]


def command(
    job: Job = None,
    bundle: Bundle = None,
    output: TextOrJson = "text",
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Say why a TrainJob failed or does not get on.

    The first fault and not the cascade behind it, with its step, pod and node, the evidence, and what to do; and when
    it reached each stage of its life. Looks at the TrainJob and all that it is made of, at events and at the last lines
    of all steps, as far as you may read them; or, with --bundle, at a file that `trainplane bundle` wrote. Reads only.

    Exit code: 0 nothing is wrong; 1 something is; 2 the TrainJob or the file cannot be read.
    """
    del verbose
    from datetime import UTC, datetime  # noqa: PLC0415 rare

    from trainplane.api import document  # noqa: PLC0415 heavy
    from trainplane.explain.explain import explain  # noqa: PLC0415 heavy
    from trainplane.explain.timeline import spans, timeline_of  # noqa: PLC0415 heavy

    if (job is None) == (bundle is None):
        raise CommandError("one of JOB and --bundle is needed, and not both", "see: trainplane explain --help")
    facts = (
        _read(bundle)
        if bundle
        else collect(job or "", Connection(namespace, context, kubeconfig, local=local, containers=containers))
    )
    told = explain(facts, datetime.now(UTC))
    timeline = timeline_of(facts)
    printed = Output(sys.stdout)
    if output == "json":
        printed.json({**told.tree(), "timeline": [document.to_tree(one) for one in timeline]})
    else:
        show(told, printed)
        show_timeline(spans(timeline, facts.job), printed)
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


def show_timeline(stages: Sequence[tuple[Milestone | Reached, timedelta]], output: Output) -> None:
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


def _read(name: str) -> Facts:
    from trainplane.explain.bundle import MOST_BYTES, read_bundle  # noqa: PLC0415 heavy

    try:
        with Path(name).open(encoding="utf-8") as file:
            return read_bundle(file.read(MOST_BYTES + 1))
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read {name}: {error}") from error
