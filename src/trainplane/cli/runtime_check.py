"""`trainplane runtime check`: whether files of runtimes are good to install, before they are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from trainplane.cli.errors import CommandError
from trainplane.cli.files import read_text
from trainplane.cli.options import TextOrJson
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from trainplane.lint.runtimes import Remark

_COLOURS = {"error": "red", "warning": "yellow"}

Files = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="YAML with runtimes; - for standard input.", show_default=False)
]


def command(files: Files, output: TextOrJson = "text") -> int:
    """Say what is wrong with files of runtimes.

    Judges TrainingRuntimes and ClusterTrainingRuntimes by all that would refuse them, or every TrainJob on them: the
    CRD's schema, admission, JobSet's references, the installed plugins. Also says what keeps the SDK from listing them.
    Needs no cluster.

    Exit code: 0 good to install, perhaps with warnings; 1 something is wrong; 2 a file cannot be read.
    """
    from trainplane.lint.runtimes import validate  # noqa: PLC0415 heavy

    remarks: list[tuple[str, Remark]] = []
    for name in files:
        try:
            text = read_text(name)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"cannot read {name}: {error}") from error
        remarks += ((name, remark) for remark in validate(text))
    printed = Output(sys.stdout)
    if output == "json":
        printed.json({"files": files, "remarks": [_tree(name, remark) for name, remark in remarks]})
    else:
        show(files, remarks, printed)
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
