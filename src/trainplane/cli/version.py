"""`trainplane version`: what is installed here, and the API that it speaks. Asks no cluster."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

from trainplane.cli.output import Output

if TYPE_CHECKING:
    import argparse


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    text = "the version of trainplane and of the API that it speaks"
    parser = commands.add_parser("version", help=text, description=f"Show {text}. No cluster is asked.")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="for people or for programs")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the versions."""
    shown, out = versions(), Output(sys.stdout)
    if given.output == "json":
        out.json(shown)
    else:
        out.line(f"trainplane {shown['trainplane']}, Python {shown['python']}")
        out.line(f"API {shown['api']}")
    return 0


def versions() -> dict[str, str]:
    """Return what this installation is."""
    import trainplane  # noqa: PLC0415 looks its version up, which other commands need not wait for
    from trainplane.api import names  # noqa: PLC0415 heavy

    return {"trainplane": trainplane.__version__, "api": names.API_VERSION, "python": platform.python_version()}
