"""`trainplane doctor`: is this cluster fit for what you want to do, and what to do if it is not."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from trainplane.cli.options import Context, Kubeconfig, Namespace, TextOrJson, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.client.doctor.report import Area, Finding, Level, Report

_MARKS: Final[dict[Level, tuple[str, str]]] = {
    "ok": ("✓", "green"),
    "warning": ("!", "yellow"),
    "wrong": ("✗", "red"),
    "unknown": ("?", "yellow"),
}


def command(
    namespace: Namespace = None,
    output: TextOrJson = "text",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Say whether this cluster is fit for you.

    Looks at this machine (Python, PyTorch, containers), at the way to the cluster (address, credentials, clocks), and
    with your own rights at the cluster: versions, CRDs, webhooks and their authorities, runtimes, queues and quota,
    what you may do in the namespace; and tries a TrainJob, of which nothing is kept (a dry run). Changes nothing.

    Exit code: 0 nothing is wrong, as far as can be seen; 1 something is wrong; 2 the cluster cannot be asked.
    """
    del verbose
    from trainplane.client.doctor.examine import examine  # noqa: PLC0415 heavy
    from trainplane.client.types.backends import KubernetesBackendConfig  # noqa: PLC0415 heavy

    config = KubernetesBackendConfig(namespace=namespace, config_file=kubeconfig, context=context)
    report = asyncio.run(examine(config))
    out = Output(sys.stdout)
    if output == "json":
        out.json(report.tree())
    else:
        show(report, out)
    if not report.reached:
        return 2
    return 0 if report.fit else 1


def show(report: Report, out: Output) -> None:
    """Print a report for people: a line for each finding under its area, and a closing one."""
    width = max((len(one.area) for one in report.findings), default=0)
    before: Area | None = None
    for one in report.findings:
        _show(one, one.area if one.area != before else "", width, out)
        before = one.area
    wrong, unknown = len(report.of("wrong")), len(report.of("unknown"))
    unseen = f"; {unknown} could not be seen" if unknown else ""
    if wrong:
        out.line(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong{unseen}.", colour="red")
    else:
        out.line(f"Nothing is wrong{unseen}.", colour="green")


def _show(finding: Finding, area: str, width: int, out: Output) -> None:
    mark, colour = _MARKS[finding.level]
    out.item(mark, colour, f"{area:<{width}}  ", finding.text, indent=0)
    if finding.remedy:
        out.item("→", "cyan", "", finding.remedy, indent=width + 4)
