"""`python -m trainplane.initializers dataset|model [FOLDER]`, and `… output [--now] [FOLDER]`.

The folder is /workspace/dataset, /workspace/model or /workspace/output. With `--now` what is there is sent, without
waiting for the end of a training.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from trainplane.initializers.leaving import leave


def _output(arguments: list[str], folder: Path | None) -> int:
    if "--now" not in arguments and "--alone" not in arguments:
        from trainplane.initializers.outputs import supervisor  # noqa: PLC0415 loads as little as it can

        return supervisor.supervise([*supervisor.sender_command(), *arguments], os.environ)
    from trainplane.initializers.outputs.program import run as send  # noqa: PLC0415 what the supervisor does not need

    return send(os.environ, folder, now="--now" in arguments)


def main(what: str, arguments: list[str]) -> int:
    """Run a step; return its exit code."""
    # The first process of a container hears SIGTERM only if it listens; what is on the disk needs no farewell.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    folders = [Path(argument) for argument in arguments if not argument.startswith("-")]
    folder = folders[0] if folders else None
    if what == "output":
        return _output(arguments, folder)
    from trainplane.initializers.program import run  # noqa: PLC0415 as above

    return run(what, os.environ, folder)


if __name__ == "__main__":
    leave(main(sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]))
