"""`trainplane render`: what a TrainJob becomes, and where each field of that comes from."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from trainplane.cli import sources
from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Containers, Context, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.client.types.renderings import RenderedJob

Source = Annotated[
    str, typer.Argument(metavar="FILE|JOB", help="A YAML file with a TrainJob, - for input; or a TrainJob's name.")
]
RuntimeFile = Annotated[
    str | None,
    typer.Option(
        "--runtime-file",
        metavar="FILE",
        help="The runtime, in place of the cluster's; with a FILE no cluster is asked.",
        show_default=False,
    ),
]
WithProvenance = Annotated[
    bool, typer.Option("--provenance", help="Say behind each value where it comes from; long values are cut.")
]
Form = Annotated[Literal["yaml", "json"], typer.Option("-o", "--output", help="How it is written.")]
_COMMENTS = 72
"""Column at which it is said where a value comes from."""


def command(
    source: Source,
    runtime_file: RuntimeFile = None,
    provenance: WithProvenance = False,
    output: Form = "yaml",
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show what a TrainJob becomes: its JobSet and what else is made.

    By the operator's own renderer, on the runtime as it is now; a file is judged as admission judges it. Nothing is
    written to the cluster. With --provenance each value says whether it comes from the runtime, from a field of the
    TrainJob, from a patch and whose, or from a plugin. What an operator adds by its own settings is not shown: the
    container that sends an output, and by which address a training reports.

    Exit code: 0 it can be made; 2 it would be refused, or cannot be read.
    """
    del verbose
    connection = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    runtime = _runtime(runtime_file) if runtime_file else None
    made = _render(source, runtime, connection)
    said = Output(sys.stderr)
    for warning in made.warnings:
        said.line(f"warning: {warning}", colour="yellow")
    for drawn in made.drawn:
        said.line(f"{drawn} is made once, with something drawn in it, and is not shown")
    show(made, Output(sys.stdout), form=output, provenance=provenance)
    return 0


def show(made: RenderedJob, output: Output, *, form: str, provenance: bool) -> None:
    """Print the objects, in the order in which they are applied."""
    if form == "json":
        told = [_described(made, number) if provenance else one.tree for number, one in enumerate(made.objects)]
        output.json({"apiVersion": "v1", "kind": "List", "items": told})
        return
    if not provenance:
        output.yaml(*(one.tree for one in made.objects))
        return
    from trainplane.client.display.provenance import origin_lines  # noqa: PLC0415 heavy

    for number, one in enumerate(made.objects):
        if number:
            output.line("---")
        for text, origin in origin_lines(one):
            output.line(f"{text:<{_COMMENTS}}" if origin else text, after=f"  # {origin}" if origin else "")


def _described(made: RenderedJob, number: int) -> Tree:
    """Return an object with where each of its values comes from, by path."""
    from trainplane.render.findings import written  # noqa: PLC0415 heavy

    one = made.objects[number]
    return {"object": one.tree, "provenance": {written(path): str(origin) for path, _, origin in one.leaves()}}


def _render(source: str, runtime: Tree | None, connection: Connection) -> RenderedJob:
    from trainplane.client import rendering  # noqa: PLC0415 heavy

    job: Tree | str = source
    if sources.kind_of(source) == "document":
        job = sources.read_document(source)
        if runtime is not None:
            return rendering.render(job, runtime)
        connection = sources.in_its_namespace(job, connection, source)

    async def work() -> RenderedJob:
        async with connection.client() as client:
            return await client.render_job(job, runtime)

    return asyncio.run(work())


def _runtime(name: str) -> Tree:
    """Return the one runtime of a file."""
    kinds = {"TrainingRuntime", "ClusterTrainingRuntime"}
    found = [one for one in sources.read_documents(name) if isinstance(one, dict) and one.get("kind") in kinds]
    if len(found) != 1:
        raise CommandError(f"--runtime-file: {name} must have one runtime, and has {len(found)}")
    return found[0]
