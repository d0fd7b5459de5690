"""`trainplane diff`: what a file would change of a TrainJob and of what is made of it."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trainplane.cli import sources
from trainplane.cli.connection import Connection
from trainplane.cli.options import Containers, Context, Kubeconfig, Local, Namespace, Verbose
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.client.types.renderings import Comparison, Difference

Source = Annotated[str, typer.Argument(metavar="FILE", help="A YAML file with a TrainJob; - for standard input.")]
Form = Annotated[Literal["text", "json"], typer.Option("-o", "--output", help="For people, or for programs.")]
_COLOURS = {"+": "green", "-": "red", "~": "yellow"}


def command(
    source: Source,
    output: Form = "text",
    local: Local = False,
    containers: Containers = False,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Show what a file would change of the TrainJob that exists.

    Field by field, of the TrainJob and of the objects that the operator makes of it, with where each new value comes
    from; and whether the cluster would take the change. What the file does not name stays as it is. Both sides are
    rendered on the runtime as it is now. Nothing is written to the cluster.

    Exit code: 0 nothing would change; 1 something would; 2 the file would be refused whatever is there, or cannot be
    read.
    """
    del verbose
    document = sources.read_document(source)
    place = Connection(namespace, context, kubeconfig, local=local, containers=containers)
    found = asyncio.run(_work(document, sources.in_its_namespace(document, place, source)))
    printed = Output(sys.stdout)
    if output == "json":
        printed.json(tree_of(found))
    else:
        show(found, printed)
    return 1 if found.differences else 0


async def _work(document: dict[str, Any], connection: Connection) -> Comparison:
    async with connection.client() as client:
        return await client.compare_job(document)


def show(found: Comparison, output: Output) -> None:
    """Print a comparison for people, object by object."""
    if not found.differences:
        output.line("nothing would change", colour="green")
        return
    subject = ""
    for one in found.differences:
        if one.subject != subject:
            subject = one.subject
            output.line(subject if found.exists else f"{subject} is not there and would be made", bold=True)
        if one.field.path:
            output.item(_mark(one), _COLOURS[_mark(one)], "", _told(one), indent=2)
    if found.refusal:
        output.item("✗", "red", "", f"the cluster would not take this: {found.refusal}", indent=0)
        output.item("→", "cyan", "", "delete the TrainJob and run the file, or give it another name", indent=2)


def _mark(one: Difference) -> str:
    return "+" if one.field.is_new else "-" if one.field.is_gone else "~"


def _told(one: Difference) -> str:
    from trainplane.client.display.provenance import shorten  # noqa: PLC0415 heavy
    from trainplane.render.findings import written  # noqa: PLC0415 heavy

    mark, field = _mark(one), one.field
    sides = {"+": [field.after], "-": [field.before], "~": [field.before, field.after]}[mark]
    origin = f"  ({one.origin})" if one.origin else ""
    return f"{written(field.path)}: {' → '.join(map(shorten, sides))}{origin}"


def tree_of(found: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON; what a side has not got is left out."""
    from trainplane.render.findings import written  # noqa: PLC0415 heavy

    def described(one: Difference) -> dict[str, Any]:
        before = {} if one.field.is_new else {"before": one.field.before}
        after = {} if one.field.is_gone else {"after": one.field.after}
        origin = {"origin": str(one.origin)} if one.origin else {}
        return {"object": one.subject, "field": written(one.field.path), **before, **after, **origin}

    return {
        "exists": found.exists,
        "refusal": found.refusal,
        "differences": [described(one) for one in found.differences],
    }
