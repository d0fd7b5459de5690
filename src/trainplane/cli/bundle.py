"""`trainplane bundle`: all that is known of a TrainJob in a file that may be handed on, without secrets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.cli.output import Output
from trainplane.cli.trainjob import add_connection, collect

if TYPE_CHECKING:
    import argparse

_DESCRIPTION = """\
Write what is known of a TrainJob into a file: states, conditions and events of all that it is made of, and the last
lines of all steps. Environments, commands, arguments, annotations and Secrets are left out, and what looks like a
credential is taken out of the rest. `trainplane explain --bundle FILE` explains it anywhere. Reads only.
"""
_EPILOG = "Exit code: 0 the file is written; 2 the TrainJob cannot be read, or the file cannot be written."


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bundle", help="write what is known of a TrainJob into a file", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("job", metavar="JOB", help="the TrainJob")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the file; - for standard output")
    add_connection(parser)
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Look, write, return the exit code."""
    from trainplane.explain.bundle import write_bundle  # noqa: PLC0415 heavy

    facts = collect(given)
    if facts is None:
        return 2
    text = write_bundle(facts)
    if given.output == "-":
        sys.stdout.write(f"{text}\n")
        return 0
    try:
        Path(given.output).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        Output(sys.stderr).line(f"trainplane: cannot write {given.output}: {error}")
        return 2
    return 0
