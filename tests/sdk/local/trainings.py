"""What the tests train: shipped to nodes that have this module and nothing else of the tests."""

from __future__ import annotations


def train(steps: int) -> None:
    """Fit a line, each process with its own half of the points."""
    import os  # noqa: PLC0415 shipped as it stands

    import torch  # noqa: PLC0415 only in the image
    import torch.distributed as dist  # noqa: PLC0415 as above
    from torch.nn.parallel import DistributedDataParallel  # noqa: PLC0415 as above

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    x = torch.linspace(-1, 1, 64)[dist.get_rank() :: dist.get_world_size()].unsqueeze(1)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), 3 * x + 1).backward()
        optimizer.step()
    total = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(total)
    where = os.environ["GROUP_RANK"]
    slope = model.module.weight.item()
    print(f"node {where}: sum {total.item():.0f} of {dist.get_world_size()}, slope {slope:.2f}", flush=True)  # noqa: T201 what the test reads
    dist.destroy_process_group()


def sum_ranks() -> None:
    """Add up the ranks of all processes."""
    from mpi4py import MPI  # type: ignore[import-not-found]  # noqa: PLC0415 only in the image

    world = MPI.COMM_WORLD
    total = world.allreduce(world.rank + 1)
    if world.rank == 0:
        print(f"{world.size} processes, sum {total}", flush=True)  # noqa: T201 as above
