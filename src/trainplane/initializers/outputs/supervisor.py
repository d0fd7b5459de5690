"""The first process of the sender's container: it starts the one that sends, and again if that is killed.

It loads nothing else, so that a node that lacks memory takes the other one. A sender that ends by itself has said how
it went; one that was killed goes on from its ledger.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from trainplane.initializers.console import Console
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

RESTARTS: Final = 10
_LONGEST_PAUSE: Final = 30.0


def supervise(command: Sequence[str], env: Mapping[str, str], console: Console | None = None) -> int:
    """Run a sender to its end; return 0, whatever became of it."""
    pause, how = 0.5, ""
    for start in range(RESTARTS + 1):
        code = _run(command)
        if code == 0:
            return 0
        how = f"signal {-code}" if code < 0 else f"code {code}"
        console = console or Console(Secrets(env))
        if start < RESTARTS:
            console.say(f"the sender ended with {how}: starting it again")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
    assert console is not None  # noqa: S101 something was said
    console.conclude(
        {
            "output": "unsent",
            "cause": "Broken",
            "message": f"the sender ended {RESTARTS + 1} times before it was done, last with {how}",
            "remedy": "see that the node has memory to spare: signal 9 is mostly the kernel's answer to lack of it",
        }
    )
    return 0


def _run(command: Sequence[str]) -> int:
    with subprocess.Popen(command) as process:

        def pass_on(number: int, _: FrameType | None) -> None:
            process.send_signal(number)
            os._exit(128 + number)

        before = signal.signal(signal.SIGTERM, pass_on)
        try:
            return process.wait()
        finally:
            signal.signal(signal.SIGTERM, before)


def sender_command() -> list[str]:
    """Return how the process is started that sends."""
    return [sys.executable, "-m", "trainplane.initializers", "output", "--alone"]
