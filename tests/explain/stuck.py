"""What a user ships: a training that reports, and whose second node reads data that never come."""

from __future__ import annotations

import os
import time


def read_shard() -> None:
    time.sleep(600)


def train() -> None:
    from trainplane import progress  # noqa: PLC0415 shipped with the function

    rank = os.environ.get("PET_NODE_RANK") or os.environ["JOB_COMPLETION_INDEX"]
    for step in range(1, 10_000):
        progress.report(step, of=10_000)
        print("step", step, flush=True)  # noqa: T201 its log
        if step == 8 and rank == "1":
            read_shard()
        time.sleep(0.1)


def reduce() -> None:
    """The same with gloo: the first node waits for the second."""
    import torch  # noqa: PLC0415 only in the image
    from torch import distributed  # noqa: PLC0415 the same

    from trainplane import progress  # noqa: PLC0415 as above

    distributed.init_process_group("gloo")
    for step in range(1, 10_000):
        progress.report(step, of=10_000)
        if step == 8 and distributed.get_rank() == 1:
            read_shard()
        distributed.all_reduce(torch.ones(1))
        time.sleep(0.1)


if __name__ == "__main__":
    train()
