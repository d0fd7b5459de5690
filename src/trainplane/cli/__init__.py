"""The command line: `trainplane COMMAND`, or `kubectl trainjob COMMAND`. One file per command.

`commands` has the table of all; `app` makes Typer's tree of it, in which a command's file is imported when it is run.
Such a file has one function, `command`: its parameters are the arguments, its docstring is the help, and it returns the
exit code: 0 all is well; 1 something is wrong with what was asked about; 2 the command line is wrong, or what it names
cannot be read. Programs read `--output json`; the text is for people and may change.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import TYPE_CHECKING

from trainplane.cli.commands import COMMANDS
from trainplane.cli.helping import help_text, program_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

ALLOCATIONS = 100_000
"""New objects after which Python looks for garbage, in place of 700: a command makes much and keeps most of it. Of a
list of 1,000 jobs that is a twelfth of the time."""

INTERRUPTED = 130
"""As shells count a program that Ctrl-C ended."""
READER_GONE = 141
"""As shells count a program whose reader went; the same where there is no such signal."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if argv is None:  # the process is ours
        gc.set_threshold(ALLOCATIONS)
    _speak_utf8()
    words = sys.argv[1:] if argv is None else list(argv)
    program = program_name(sys.argv[0])
    try:
        code = _run(program, words)
        sys.stdout.flush()
        if argv is None:
            gc.freeze()  # all of it goes with the process: Python need not look through it once more
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read us has seen enough; nothing more must be written, at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    return code


def _speak_utf8() -> None:
    """Write UTF-8 wherever else was chosen, as kubectl does: what Windows chooses for pipes cannot say ✓."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def _run(program: str, words: list[str]) -> int:
    if "_TRAINPLANE_COMPLETE" in os.environ:
        from trainplane.cli.candidates import candidates  # noqa: PLC0415 as below

        sys.stdout.writelines(f"{one}\n" for one in candidates(words))
        return 0
    if not words:
        sys.stderr.write(help_text(program, COMMANDS))
        return 2
    if words in (["--help"], ["-h"]):  # the most asked of all: nothing needs to be imported for it
        sys.stdout.write(help_text(program, COMMANDS))
        return 0
    from trainplane.cli.app import run  # noqa: PLC0415 Typer is slow to import

    return run(program, words)
