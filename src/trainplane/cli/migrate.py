"""`trainplane migrate`: older jobs as TrainJobs, with what that changes and the proof; or a cluster's list of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.files import read_text
from trainplane.cli.older import asked, initializers, resources
from trainplane.cli.options import AllNamespaces, Context, Kubeconfig, Namespace, Verbose
from trainplane.cli.output import Output, yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource
    from trainplane.legacy.migrate.outcome import Migration
    from trainplane.render.findings import Finding

_MARKS = {"carried": ("·", ""), "changed": ("~", "yellow"), "left out": ("-", "red")}


Source = Annotated[
    str | None,
    typer.Argument(metavar="[FILE|KIND/NAME]", help="YAML, - for standard input; or a job.", show_default=False),
]
All = Annotated[bool, typer.Option("--all", help="List what the cluster has, and in which order to go.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --all: nothing is changed, and this says so.")]
Gang = Annotated[
    Literal["volcano", "coscheduling"] | None,
    typer.Option("--gang-scheduler", help="What the old operator was told to use.", show_default=False),
]
Form = Annotated[Literal["yaml", "json"], typer.Option("-o", "--output", help="For kubectl, or for programs.")]
Folder = Annotated[
    str | None,
    typer.Option(
        "--write", metavar="DIR", help="Write a file for each job there, over none that is there.", show_default=False
    ),
]


def command(
    source: Source = None,
    every: All = False,
    dry_run: DryRun = False,
    all_namespaces: AllNamespaces = False,
    gang_scheduler: Gang = None,
    output: Form = "yaml",
    write: Folder = None,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Turn older jobs into TrainJobs.

    PyTorchJobs, TFJobs, XGBoostJobs, PaddleJobs, JAXJobs and MPIJobs, and TrainJobs and runtimes of
    kubeflow.org/v2alpha1, become TrainJobs of today's API, each with a TrainingRuntime where no shipped runtime fits.
    What becomes of each field is told on standard error, and both are rendered and their pods compared: what would not
    run as before is refused, with the reason. Reads only; apply what it prints yourself.

    Exit code: 0 converted; 1 something is refused; 2 the command line is wrong, or what it names cannot be read.
    """
    from trainplane.cli.migrate_list import show_cluster  # noqa: PLC0415 only where it is asked for
    from trainplane.kube.errors import KubeError  # noqa: PLC0415 heavy
    from trainplane.lint.yaml_lines import UnreadableError  # noqa: PLC0415 heavy

    del verbose
    connection, gang = Connection(namespace, context, kubeconfig), gang_scheduler or ""
    if (source is None) != every:
        raise CommandError("one of FILE, KIND/NAME and --all is needed, and not both", "see: trainplane migrate --help")
    if every != dry_run or (all_namespaces and not every):
        raise CommandError("say --all --dry-run for a list, with -A of every namespace; nothing is changed by either")
    try:
        if source is None:
            return show_cluster(connection, gang, form=output, all_namespaces=all_namespaces)
        return _convert(_sources(source, connection), source, gang, output, write)
    except (OSError, UnicodeDecodeError, UnreadableError, KubeError) as error:
        raise CommandError(f"cannot read {source or 'the cluster'}: {error}") from error


def _convert(sources: list[Any], named: str, gang: str, form: str, folder: str | None) -> int:
    from trainplane.legacy.migrate.convert import migrate  # noqa: PLC0415 heavy
    from trainplane.legacy.migrate.outcome import RefusedError  # noqa: PLC0415 heavy

    output, moved, refused = Output(sys.stderr), [], 0
    for source in sources:
        try:
            one = migrate(source, gang=gang, initializers=initializers())
        except RefusedError as error:
            refused += 1
            show_refused(_title(source), error.findings, output)
            continue
        moved.append(one)
        if form == "yaml":
            show(_title(source), one, output)
    if not sources:
        raise CommandError(f"there is no older job in {named}")
    if folder is not None:
        try:
            _write(moved, Path(folder))
        except OSError as error:
            raise CommandError(f"cannot write to {folder}: {error}") from error
    elif form == "json":
        Output(sys.stdout).json([_tree(one) for one in moved])
    else:
        sys.stdout.write("---\n".join(yaml_text(tree) for one in moved for tree in one.objects))
    return 1 if refused else 0


def show(title: str, moved: Migration, output: Output) -> None:
    """Print what became of a job, for people."""
    made = ", then ".join(f"{one['kind']} {one['metadata']['name']}" for one in moved.objects)
    output.item("✓", "green", f"{title} ", f"becomes {made}", indent=0)
    for note in moved.notes:
        mark, colour = _MARKS[note.outcome]
        output.item(mark, colour, f"{note.field}: ", note.text or note.outcome, indent=2)
    if moved.pods:
        count = f"{moved.pods} pods compared" if moved.pods > 1 else "1 pod compared"
        differ = ", ".join(map(str, moved.differences))
        output.item("=", "cyan", f"{count}: ", f"not as before: {differ}" if differ else "as before", indent=2)


def show_refused(title: str, findings: Iterable[Finding], output: Output) -> None:
    """Print why a job is refused, for people."""
    output.line(f"✗ {title}", colour="red", after=" is refused")
    for finding in findings:
        output.item("·", "", f"{finding.path}: ", finding.problem, indent=2)


def _title(source: Any) -> str:
    """Return what a job is called; whoever wrote it may have written anything."""
    metadata = source.get("metadata") if isinstance(source, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = source.get("kind") if isinstance(source, dict) else None
    return f"{str(kind)[:63]} {str(name)[:63]}" if kind and name else str(kind)[:63] if kind else "a document"


def _tree(moved: Migration) -> dict[str, Any]:
    return {
        "kind": moved.kind,
        "objects": list(moved.objects),
        "notes": [{"field": note.field, "outcome": note.outcome, "text": note.text} for note in moved.notes],
        "pods": moved.pods,
        "differences": list(map(str, moved.differences)),
    }


def _sources(source: str, connection: Connection) -> list[Any]:
    found = None if source == "-" or Path(source).exists() else _named(source)
    if found is None:
        from trainplane.lint.yaml_lines import read  # noqa: PLC0415 heavy

        return [one.tree for one in read(read_text(source)) if _is_older(one.tree)]
    resource, name = found

    async def fetch(client: Client) -> Any:
        return await client.get(resource, name, connection.namespace if resource.namespaced else None)

    return [asked(connection, fetch)]


def _is_older(tree: object) -> bool:
    """Return whether a document may be an older job, and no ConfigMap beside one."""
    return not isinstance(tree, dict) or str(tree.get("apiVersion", "")).startswith("kubeflow.org/")


def _named(text: str) -> tuple[Resource, str] | None:
    """Return what `pytorchjob/mnist` names, by any name of its kind; None if it names nothing.

    The kinds of the older TrainJob shape are today's, so these go by their plural or singular alone.
    """
    from trainplane.resources import LEGACY_JOBS  # noqa: PLC0415 heavy

    kind, _, name = text.partition("/")
    word = kind.lower().removesuffix(".kubeflow.org")
    for resource in resources():
        known = {resource.plural, resource.plural.removesuffix("s")}
        if resource.kind in LEGACY_JOBS:
            known.add(resource.kind.lower())
        if name and word in known:
            return resource, name
    return None


def _write(moved: list[Migration], folder: Path) -> None:
    """Write a file for each job, over none; the names in theirs have passed as names of objects."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in moved:
        metadata = one.objects[-1]["metadata"]
        file = folder / f"{metadata.get('namespace', 'default')}-{metadata['name']}-{one.kind.lower()}.yaml"
        with file.open("x", encoding="utf-8") as stream:
            stream.write("---\n".join(map(yaml_text, one.objects)))
