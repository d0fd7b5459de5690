"""`trainplane fleet check`: what would stop a job on each worker, before one is sent."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainplane.cli.fleet import Fleet, KueueNamespace, Timeout, WorkerContexts, ask
from trainplane.cli.options import Context, Kubeconfig, TextOrJson, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.hub.check.report import Check, ClusterReport, Finding, Level, Report
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client

_MARKS: dict[Level | None, tuple[str, str]] = {
    None: ("✓", "green"),
    "stops": ("✗", "red"),
    "unseen": ("?", "yellow"),
    "warns": ("!", "yellow"),
}
_CLOSING: tuple[tuple[tuple[Level | None, ...], str, str], ...] = (
    (("stops",), "red", "A job would be stopped on"),
    (("unseen",), "yellow", "Not everything could be seen on"),
    ((None, "warns"), "green", "Nothing would stop a job on"),
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[a-z0-9]([-a-z0-9.]*[a-z0-9])?){0,2}")


Job = Annotated[
    str | None,
    typer.Option(
        "--trainjob",
        "--job",
        metavar="FILE|[KIND/]NS/NAME",
        help="Also judge the way of this job: a manifest (- for standard input), or one of the hub's: a TrainJob, or "
        "of another KIND, as in pytorchjob/team/mnist.",
        show_default=False,
    ),
]


def command(
    trainjob: Job = None,
    output: TextOrJson = "text",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    worker: WorkerContexts = None,
    kueue_namespace: KueueNamespace = "kueue-system",
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> int:
    """Say what would stop a job on each worker.

    Looks at the hub and at every worker of MultiKueue: connections, credentials, versions, runtimes that differ (with
    the difference), namespaces, queues, priority classes and, with --job, the secrets, config maps and claims that its
    pods name and whether the quota could ever hold it. Reads only.

    Exit code: 0 nothing would stop a job; 1 something would, or could not be seen; 2 the hub cannot be asked.
    """
    del verbose

    async def look(hub: Client, workers: Workers, admin_clients: dict[str, Client]) -> Report:
        from trainplane.hub.check.judge import check  # noqa: PLC0415 heavy

        job = await _job(trainjob, hub) if trainjob else None
        return await check(hub, workers, trainjob=job, admin_clients=admin_clients)

    report = ask(look, Fleet(context, kubeconfig, worker or [], kueue_namespace, timeout))
    printed = Output(sys.stdout)
    if output == "json":
        printed.json(report.tree())
    else:
        show(report, printed)
    return 0 if report.ready else 1


def show(report: Report, output: Output) -> None:
    """Print a report for people: each cluster, each area a line, findings below theirs."""
    for cluster in (report.hub, *report.workers):
        _show_cluster(cluster, output)
    if not report.workers:
        output.line("The hub has no workers: create a MultiKueueCluster for each.", colour="red")
    if report.hub.level == "stops":
        output.line("A job would be stopped on the hub.", colour="red")
    for levels, colour, text in _CLOSING:
        workers = [worker.name for worker in report.workers if worker.level in levels]
        if workers:
            output.line(f"{text} {', '.join(workers)}.", colour=colour)


def _show_cluster(cluster: ClusterReport, output: Output) -> None:
    mark, colour = _MARKS[cluster.level]
    output.line(f"{mark} {cluster.name}", colour=colour, bold=True, after=f"  {_verdict(cluster)}")
    width = max(len(check.area) for check in cluster.checks)
    for check in cluster.checks:
        _show_check(check, width, output)
    output.line("")


def _verdict(cluster: ClusterReport) -> str:
    counts = {level: sum(finding.level == level for finding in cluster.findings) for level in _MARKS if level}
    words = {"stops": "would stop a job", "unseen": "could not be seen", "warns": "to look at"}
    told = [f"{count} {words[level]}" for level, count in counts.items() if count]
    return ", ".join(told) or "ready"


def _show_check(check: Check, width: int, output: Output) -> None:
    mark, colour = _MARKS[check.level]
    output.item(mark, colour, f"{check.area:<{width}}  ", check.summary, indent=2)
    for finding in check.findings:
        _show_finding(finding, width + 6, output)


def _show_finding(finding: Finding, indent: int, output: Output) -> None:
    mark, colour = _MARKS[finding.level]
    output.item(mark, colour, "", finding.problem, indent=indent)
    if finding.diff:
        output.diff(finding.diff, indent=indent + 4)
    output.item("→", "cyan", "", finding.remedy, indent=indent + 2)


async def _job(named: str, hub: Client) -> dict[str, Any]:
    from trainplane.hub.check.gather import job_named  # noqa: PLC0415 heavy
    from trainplane.hub.check.needs import read_manifest  # noqa: PLC0415 heavy
    from trainplane.hub.errors import ManifestError  # noqa: PLC0415 heavy
    from trainplane.hub.kinds import KINDS, TRAIN_JOB  # noqa: PLC0415 heavy

    try:
        text = _manifest(named)
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot read {named}: {error}") from error
    if text is not None:
        return read_manifest(text, hub.namespace, "standard input" if named == "-" else named)
    if not _NAME.fullmatch(named):
        raise ManifestError(f"--trainjob {named!r} is neither a file nor NAMESPACE/NAME")
    place, _, name = named.rpartition("/")
    word, _, namespace = place.rpartition("/")
    by_word = {kind.name.lower(): kind for kind in KINDS.values()}
    if word and word not in by_word:
        raise ManifestError(f"--job {named!r}: {word!r} is no kind of jobs: these are {', '.join(by_word)}")
    return await job_named(hub, namespace or hub.namespace, name, by_word.get(word, TRAIN_JOB))


def _manifest(named: str) -> str | None:
    """Return the text of a manifest, None if it is the name of a job that was given."""
    if named == "-":
        return sys.stdin.read()
    path = Path(named)
    return path.read_text(encoding="utf-8") if path.is_file() or path.suffix in {".yaml", ".yml", ".json"} else None
