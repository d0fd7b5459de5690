"""`trainplane bundle`: all that is known of a TrainJob in a file that may be handed on, without secrets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from trainplane.cli.connection import Connection
from trainplane.cli.errors import CommandError
from trainplane.cli.options import Context, JobName, Kubeconfig, Namespace, Verbose
from trainplane.cli.trainjob import collect

Target = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="The file; - for standard output.", show_default=False)
]


def command(
    job: JobName,
    output: Target,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    verbose: Verbose = False,
) -> int:
    """Write what is known of a TrainJob into a file.

    States, conditions and events of all that it is made of, and the last lines of all steps. Environments, commands,
    arguments, annotations and Secrets are left out, and what looks like a credential is taken out of the rest.
    `trainplane explain --bundle FILE` explains it anywhere. Reads only.

    Exit code: 0 the file is written; 2 the TrainJob cannot be read, or the file cannot be written.
    """
    del verbose
    from trainplane.explain.bundle import write_bundle  # noqa: PLC0415 heavy

    facts = collect(job, Connection(namespace, context, kubeconfig))
    text = write_bundle(facts)
    if output == "-":
        sys.stdout.write(f"{text}\n")
        return 0
    try:
        Path(output).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {output}: {error}") from error
    return 0
