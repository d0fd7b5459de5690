"""What a runtime has installed, asked of a TrainJob of one node."""

from __future__ import annotations

import shutil
from contextlib import aclosing
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from trainplane.client import inventory
from trainplane.client.submission import compose, draw_name
from trainplane.client.types.jobs import COMPLETE
from trainplane.client.types.trainers import ScriptTrainer
from trainplane.client.waiting import wait

if TYPE_CHECKING:
    from trainplane.client.backends.backend import Backend
    from trainplane.client.types.runtimes import Runtime

WAIT_SECONDS: Final = 600
"""An image of some gigabytes may have to be pulled first."""
STUCK_SECONDS: Final = 120
"""For what will not come by itself, such as an image that its registry has not got."""


async def show_packages(backend: Backend, runtime: Runtime) -> None:
    """Run `inventory` on a node of a runtime, print what it prints, and delete the TrainJob."""
    with TemporaryDirectory() as workspace:
        shutil.copy(inventory.__file__, workspace)
        trainer = ScriptTrainer("inventory.py", workspace=workspace, num_nodes=1)
        job = compose(runtime, None, trainer, backend=backend.kind, name=lambda: draw_name(runtime, trainer))
    name = await backend.submit(job)
    try:
        await wait(backend, name, {COMPLETE}, WAIT_SECONDS, stuck_seconds=STUCK_SECONDS)
        async with aclosing(backend.read_logs(name, ["node-0"], follow=False)) as lines:
            async for line in lines:
                print(line.text)  # noqa: T201 what it is for
    finally:
        await backend.delete_job(name)
