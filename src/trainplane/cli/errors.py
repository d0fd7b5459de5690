"""What goes wrong in a command, in a line with what to do, and the exit code that says so to scripts."""

from __future__ import annotations

import sys
from typing import Final

from trainplane.cli.output import Output

WRONG: Final = 1
"""Something is wrong with what was asked about."""
UNREADABLE: Final = 2
"""The command line is wrong, or what it names cannot be read."""


class CommandError(Exception):
    """A command cannot do what it is asked to.

    Args:
        message: what is wrong, with the argument's or field's name.
        remedy: what to do about it.
        code: the exit code.
    """

    def __init__(self, message: str, remedy: str = "", code: int = UNREADABLE) -> None:
        self.remedy = remedy
        self.code = code
        super().__init__(message)


def tell(error: Exception, *, verbose: bool) -> int:
    """Print an error on standard error in one line, with its traceback if `verbose`; return the exit code."""
    line, code = told(error) or (repr(error), WRONG)
    output = Output(sys.stderr)
    output.line(f"trainplane: {line}")
    if verbose:
        import traceback  # noqa: PLC0415 rare

        for part in traceback.format_exception(error):
            output.line(part.rstrip("\n"))
    return code


def told(error: Exception) -> tuple[str, int] | None:
    """Return the line and the exit code of an error that users meet; None for one that is a fault of ours."""
    if isinstance(error, CommandError):
        remedy = f"; {error.remedy}" if error.remedy else ""
        return f"{_line(error)}{remedy}", error.code
    from trainplane.client.errors import JobFailedError, JobTimeoutError, TrainplaneError  # noqa: PLC0415 heavy
    from trainplane.hub.errors import HubError  # noqa: PLC0415 heavy
    from trainplane.kube.errors import KubeError  # noqa: PLC0415 heavy

    if isinstance(error, TrainplaneError | HubError | KubeError):
        return _line(error), WRONG if isinstance(error, JobFailedError | JobTimeoutError) else UNREADABLE
    return None


def _line(error: Exception) -> str:
    """Return an error's words in one line: some of them were written by a cluster."""
    return " ".join(str(error).split())
