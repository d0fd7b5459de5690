"""Our operator with 1.3 times its CPU time, to show that the bench finds that: `python slowed.py ARGUMENTS`.

A thread of the same interpreter burns 0.3 s for each second that the operator works, as code that got slower would: the
event loop waits for it.
"""

from __future__ import annotations

import sys
import threading
import time

from benchmarks.judge import SLOWDOWN
from trainplane.operator.__main__ import main

_LOOK_SECONDS = 0.005


def burn(share: float) -> None:
    """Use a share of the CPU time that others of this process use, for ever."""
    while True:
        time.sleep(_LOOK_SECONDS)
        worked = time.process_time() - time.thread_time()
        while time.thread_time() < worked * share:
            pass


if __name__ == "__main__":
    threading.Thread(target=burn, args=(SLOWDOWN - 1,), daemon=True).start()
    sys.exit(main(sys.argv[1:]))
