"""A controller of `trainplane.kube` that does nothing, measured: `python ours.py KUBECONFIG RESULT TRAINJOBS`.

TrainJobs are kept whole and JobSets as metadata and status, as the operator keeps them. It writes what it measured
until every object was in the store and every key worked once, then goes on until it is ended, counting reconciles. A
stall is told twice: by the wall's clock, which counts what other processes took, and by the loop's own CPU time.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from objects import JOBSETS, TRAINJOBS

from benchmarks.handover import hand_over
from trainplane.kube.client import Client
from trainplane.kube.controller import DONE, Controller, ControllerSettings, Result, own_key
from trainplane.kube.loading import load_config
from trainplane.kube.manager import Manager
from trainplane.kube.projection import METADATA_AND_STATUS
from trainplane.kube.reflector import Reflector
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from trainplane.kube.resource import Key

_TICK_SECONDS = 0.005
_IDLE_TICK_SECONDS = 0.1
"""Ticks cost CPU; in steady state they must not be what is measured."""


@dataclass
class Meter:
    """What the process did so far."""

    reconciled: int = 0
    stall_seconds: float = 0.0
    stall_cpu_seconds: float = 0.0
    tick: float = _TICK_SECONDS

    async def watch_loop(self) -> None:
        """Measure the longest time for which the event loop did not come round."""
        while True:
            wall, cpu, tick = time.monotonic(), time.thread_time(), self.tick
            await asyncio.sleep(tick)
            self.stall_seconds = max(self.stall_seconds, time.monotonic() - wall - tick)
            self.stall_cpu_seconds = max(self.stall_cpu_seconds, time.thread_time() - cpu)

    def figures(self) -> dict[str, float]:
        """Return what is known now."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "reconciled": self.reconciled,
            "stall_ms": self.stall_seconds * 1000,
            "stall_cpu_ms": self.stall_cpu_seconds * 1000,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "rss_mb": int(status["VmRSS"].split()[0]) / 1024,
            "peak_rss_mb": int(status["VmHWM"].split()[0]) / 1024,
            "monotonic": time.monotonic(),
        }


async def main(kubeconfig: str, result: Path, expected: int) -> None:
    """Run until SIGTERM."""
    meter = Meter()
    # Idle before the start: what a process of these libraries costs is not a cost of the objects.
    begin = meter.figures()

    async with Client.connect(load_config(kubeconfig)) as client:
        worked_once = asyncio.Event()
        trainjobs, jobsets = Store(TRAINJOBS), Store(JOBSETS, METADATA_AND_STATUS)

        async def reconcile(key: Key) -> Result:
            trainjobs.get(key)
            jobsets.get(key)
            meter.reconciled += 1
            if meter.reconciled == expected:
                worked_once.set()
            return DONE

        controller = Controller("noop", reconcile, settings=ControllerSettings(workers=16))
        sources = [controller.source(own_key)]
        reflectors = [Reflector(client, TRAINJOBS, trainjobs, sources), Reflector(client, JOBSETS, jobsets, sources)]
        manager = Manager(reflectors, [controller])
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, manager.stop)
        running = asyncio.create_task(manager.run())
        watching = asyncio.create_task(meter.watch_loop())
        await manager.ready.wait()
        synced = meter.figures()
        await worked_once.wait()
        worked = meter.figures()
        meter.stall_seconds, meter.tick = 0.0, _IDLE_TICK_SECONDS
        figures: dict[str, object] = {"begin": begin, "synced": synced, "worked": worked}
        figures |= {"trainjobs": len(trainjobs), "jobsets": len(jobsets)}
        hand_over(result, figures)
        await running
        watching.cancel()
        hand_over(result, figures | {"end": meter.figures()})


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
