"""`trainplane runtime check`: whether files of runtimes are good to install, before they are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainplane.cli.files import read_text
from trainplane.cli.output import Output

if TYPE_CHECKING:
    import argparse

    from trainplane.lint.runtimes import Remark

_DESCRIPTION = """\
Judge files of TrainingRuntimes and ClusterTrainingRuntimes by all that would refuse them, or every TrainJob on them:
the CRD's schema, admission, JobSet's references, the installed plugins. Also say what keeps the SDK from listing them.
Needs no cluster.
"""
_EPILOG = "Exit code: 0 good to install, perhaps with warnings; 1 something is wrong; 2 a file cannot be read."
_COLOURS = {"error": "red", "warning": "yellow"}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "check", help="say what is wrong with files of runtimes", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="YAML with runtimes; - for standard input")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="for people or for programs")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Judge, print, return the exit code."""
    from trainplane.lint.runtimes import validate  # noqa: PLC0415 heavy

    remarks: list[tuple[str, Remark]] = []
    for name in given.files:
        try:
            text = read_text(name)
        except (OSError, UnicodeDecodeError) as error:
            Output(sys.stderr).line(f"trainplane: cannot read {name}: {error}")
            return 2
        remarks += ((name, remark) for remark in validate(text))
    output = Output(sys.stdout)
    if given.output == "json":
        output.json({"files": given.files, "remarks": [_tree(name, remark) for name, remark in remarks]})
    else:
        show(given.files, remarks, output)
    return 1 if any(remark.severity == "error" for _, remark in remarks) else 0


def show(files: list[str], remarks: list[tuple[str, Remark]], output: Output) -> None:
    """Print remarks for people and editors: each on a line that begins with its file and line."""
    for name, remark in remarks:
        field = f"{remark.path}: " if remark.path else ""
        output.line(
            f"{name}:{remark.line}: {remark.severity}:",
            colour=_COLOURS[remark.severity],
            after=f" {field}{remark.problem}",
        )
    bad = {name for name, remark in remarks if remark.severity == "error"}
    for name in dict.fromkeys(files):
        if name not in bad:
            output.line(f"{name}: good to install", colour="green")


def _tree(name: str, remark: Remark) -> dict[str, object]:
    return {
        "file": name,
        "line": remark.line,
        "field": remark.path,
        "severity": remark.severity,
        "problem": remark.problem,
    }
