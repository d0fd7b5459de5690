"""`trainplane fleet sync`: the hub's runtimes, applied to the workers; without --apply, what that would change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainplane.cli.fleet import Fleet, KueueNamespace, Timeout, WorkerContexts, ask
from trainplane.cli.options import Context, Kubeconfig, TextOrJson, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.hub.sync import Step, SyncReport, Verb
    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client

_WORDS: dict[Verb, tuple[str, str, str]] = {
    "create": ("+", "green", "create"),
    "update": ("~", "yellow", "change"),
    "delete": ("-", "red", "delete"),
    "leave": ("✗", "red", "leave"),
}


Apply = Annotated[bool, typer.Option("--apply", help="Do it, instead of saying what would be done.")]
Prune = Annotated[bool, typer.Option("--prune", help="Also delete what a sync made and the hub has no longer.")]
EvenInUse = Annotated[
    bool, typer.Option("--even-in-use", help="Also change runtimes where Kueue then stops TrainJobs of the worker.")
]


def command(
    apply: Apply = False,
    prune: Prune = False,
    even_in_use: EvenInUse = False,
    output: TextOrJson = "text",
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    worker: WorkerContexts = None,
    kueue_namespace: KueueNamespace = "kueue-system",
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> int:
    """Apply the hub's runtimes to the workers.

    Gives every worker the hub's ClusterTrainingRuntimes, and its TrainingRuntimes in the namespaces that send jobs
    there. By default nothing is changed: each worker is asked whether it would take the change (a dry run), and the
    difference is shown. Runtimes whose change would make Kueue stop TrainJobs of a worker are left alone, and nothing
    is ever deleted but, with --prune, what an earlier sync made.

    Exit code: 0 the workers have the hub's runtimes; 1 they do not (yet); 2 the hub cannot be asked.
    """
    del verbose

    async def work(hub: Client, workers: Workers, admin_clients: dict[str, Client]) -> SyncReport:
        from trainplane.hub.sync import sync  # noqa: PLC0415 heavy

        return await sync(hub, workers, admin_clients=admin_clients, apply=apply, prune=prune, even_in_use=even_in_use)

    report = ask(work, Fleet(context, kubeconfig, worker or [], kueue_namespace, timeout))
    printed = Output(sys.stdout)
    if output == "json":
        printed.json(tree(report))
    else:
        show(report, printed, applied=apply)
    return 0 if report.settled else 1


def tree(report: SyncReport) -> dict[str, Any]:
    """Return a report as plain data, for programs."""
    steps = [
        {
            "worker": step.worker,
            "verb": step.verb,
            "kind": step.resource.kind,
            "namespace": step.key.namespace,
            "name": step.key.name,
            "done": step.done,
            "reason": step.reason,
            "diff": step.diff,
        }
        for step in report.steps
    ]
    return {
        "settled": report.settled,
        "steps": steps,
        "equal": dict(report.equal),
        "unreachable": dict(report.unreachable),
    }


def show(report: SyncReport, output: Output, *, applied: bool) -> None:
    """Print a report, or what became of it, for people."""
    for worker in sorted({*report.equal, *report.unreachable}):
        if worker in report.unreachable:
            output.line(f"✗ {worker}", colour="red", bold=True, after="  cannot be synced")
            output.item("✗", "red", "", report.unreachable[worker], indent=2)
        else:
            steps = [step for step in report.steps if step.worker == worker]
            _show_worker(worker, steps, report.equal[worker], output)
        output.line("")
    if not report.equal and not report.unreachable:
        output.line("The hub has no workers: create a MultiKueueCluster for each.", colour="red")
    elif report.settled:
        output.line("The workers have the hub's runtimes.", colour="green")
    elif applied or not any(step.verb != "leave" for step in report.steps):
        output.line("Not all could be done: see above.", colour="red")
    else:
        output.line("Nothing was changed. To do it: trainplane fleet sync --apply", colour="yellow")


def _show_worker(worker: str, steps: list[Step], equal: int, output: Output) -> None:
    settled = all(step.done for step in steps)
    text = f"  {equal} equal the hub's already" + (f", {len(steps)} not" if steps and not settled else "")
    output.line(f"{'✓' if settled else '~'} {worker}", colour="green" if settled else "yellow", bold=True, after=text)
    for step in steps:
        mark, colour, word = _WORDS[step.verb]
        output.item(mark, colour, f"{word}d " if step.done else f"{word} ", str(step), indent=2)
        if step.reason:
            output.item("→", "cyan", "", step.reason, indent=6)
        if step.diff and not step.done:
            output.diff(step.diff, indent=6)
