"""The options that commands share, each said once: `def command(job: JobName, namespace: Namespace = None) -> int`."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import typer

from trainplane.cli.completing import job_names

VERBOSE: Final = "verbose"
"""Where a command's context remembers that more was asked for."""


def _remember(context: typer.Context, verbose: bool) -> bool:
    if verbose:
        context.meta[VERBOSE] = True
    return verbose


JobName: TypeAlias = Annotated[
    str, typer.Argument(metavar="JOB", help="The TrainJob.", show_default=False, autocompletion=job_names)
]
JobNames: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="JOB...", help="The TrainJobs.", show_default=False, autocompletion=job_names)
]
Namespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "-n", "--namespace", metavar="NAME", help="The namespace (default: the context's).", show_default=False
    ),
]
Labels: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "-l", "--selector", metavar="LABELS", help="Only those with these labels: team=vision,!old.", show_default=False
    ),
]
AllNamespaces: TypeAlias = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Of every namespace.")]
Context: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Context of the cluster (default: the current one).", show_default=False
    ),
]
Kubeconfig: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="Kubeconfig of the cluster (default: as kubectl finds it).",
        show_default=False,
    ),
]
Local: TypeAlias = Annotated[bool, typer.Option("--local", help="Processes of this machine, without a cluster.")]
Containers: TypeAlias = Annotated[
    bool, typer.Option("--containers", help="Containers of this machine, by docker or podman, without a cluster.")
]
Form: TypeAlias = Literal["table", "wide", "json", "yaml", "name"]
Format: TypeAlias = Annotated[Form, typer.Option("-o", "--output", help="For people, or for programs.")]
TextOrJson: TypeAlias = Annotated[
    Literal["text", "json"], typer.Option("-o", "--output", help="For people, or for programs.")
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("-v", "--verbose", help="Of an error, tell more than a line.", callback=_remember)
]

__all__ = [
    "AllNamespaces",
    "Containers",
    "Context",
    "Form",
    "Format",
    "JobName",
    "JobNames",
    "Kubeconfig",
    "Labels",
    "Local",
    "Namespace",
    "TextOrJson",
    "Verbose",
]
