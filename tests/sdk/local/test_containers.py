"""What only containers have: images, networks, limits by the kernel, several containers in a pod."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from lab.paths import REPOSITORY
from tests.sdk.local.documents import printed, trainjob, until, until_over

if TYPE_CHECKING:
    from tests.sdk.local.machine import Podman
    from trainplane.client.backends.local.backend import LocalBackend

LOOK = """
import os, socket
limits = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max")
limit = next(path for path in limits if os.path.exists(path))
names = [socket.gethostbyname(f"look-node-0-{n}{domain}") for n in range(2) for domain in ("", ".look")]
print(int(open(limit).read()) >> 20, len(set(names)), os.path.exists("{CHECKOUT}"), socket.gethostname())
"""


async def test_limits_names_and_files_are_the_containers_own(container: LocalBackend) -> None:
    limits = {"resourcesPerNode": {"limits": {"memory": "200Mi", "cpu": "500m"}}}
    name = await container.submit(trainjob("look", LOOK.replace("{CHECKOUT}", str(REPOSITORY)), trainer=limits))
    await until(container, name, "Complete")
    assert sorted(await printed(container, name)) == [
        f"[node-{rank}] 200 2 False look-node-0-{rank}" for rank in range(2)
    ]


async def test_an_image_that_is_not_there_is_waited_for(container: LocalBackend) -> None:
    trainer = {"image": "lab.trainplane.dev/none:1"}
    name = await container.submit(trainjob("imageless", "", nodes=1, trainer=trainer))
    async with aclosing(container.watch_job(name)) as changes:
        async for job in changes:
            if job.cause:
                break
    assert job.status == "Created"
    assert job.cause
    assert (job.cause.reason, job.cause.step) == ("ErrImageNeverPull", "node-0")
    assert "lab.trainplane.dev/none:1 is not on this machine" in job.cause.message
    await container.delete_job(name)


async def test_a_command_that_is_not_in_the_image_is_named(container: LocalBackend, podman: Podman) -> None:
    name = await container.submit(trainjob("wrong", "", nodes=1, trainer={"command": ["no-such-program"]}))
    job = await until_over(container, name)
    assert job.status == "Failed"
    assert job.cause
    assert job.cause.step == "node-0"
    assert (job.cause.reason, job.cause.exit_code) == ("StartError", 128)
    assert "its log has what the engine said" in job.cause.message
    assert any("no-such-program" in line for line in await printed(container, name))
    await container.delete_job(name)
    assert podman.call("ps", "--all", "--quiet") == []


async def test_whenever_a_job_is_deleted_nothing_of_it_is_left(container: LocalBackend, podman: Podman) -> None:
    for moment in range(6):  # its network and its two containers are made meanwhile
        name = await container.submit(trainjob(f"brief-{moment}", "import time; time.sleep(60)"))
        await asyncio.sleep(moment / 4)
        await container.delete_job(name)
        assert podman.call("ps", "--all", "--quiet") == []
        assert podman.call("network", "ls", "--quiet", "--filter", "label=trainer.kubeflow.org/trainjob-name") == []
