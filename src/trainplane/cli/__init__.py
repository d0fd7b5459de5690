"""The command line: `trainplane COMMAND`. One file per command; heavy imports stay inside commands.

Each command's file has `add(commands)`, which declares its arguments, and `run(arguments) -> int`, which does the work
and returns the exit code: 0 all is well, 1 something was found, 2 the command line is wrong, or what it names (hub,
file) cannot be read. Programs read `--output json`; the text is for people and may change.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import TYPE_CHECKING

from trainplane.cli import bundle, explain, fleet_check, fleet_sync, migrate, runtime_check, version

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; wrong usage exits with 2, as argparse does."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # whoever read us has seen enough; nothing more must be written, at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainplane", description="Distributed training on Kubernetes.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    explain.add(commands)
    bundle.add(commands)
    text = "the clusters that MultiKueue sends jobs to"
    fleet = commands.add_parser("fleet", help=text, description=f"Look after {text}.")
    fleet_commands = fleet.add_subparsers(title="commands", metavar="COMMAND", required=True)
    fleet_check.add(fleet_commands)
    fleet_sync.add(fleet_commands)
    text = "the runtimes that TrainJobs run on"
    runtime = commands.add_parser("runtime", help=text, description=f"Look after {text}.")
    runtime_check.add(runtime.add_subparsers(title="commands", metavar="COMMAND", required=True))
    migrate.add(commands)
    version.add(commands)
    return parser
