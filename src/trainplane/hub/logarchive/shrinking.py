"""What goes of a job that has more than it may, what is least missed first.

1. pods whose place another one took, whole, the oldest first;
2. runs of a container that another run came after, whole, the oldest first;
3. the oldest lines of its longest log, again and again, whether or not anything of that log is left;
4. pods that are over, whole, the oldest first. Where files are too many and not bytes, they go before lines do.

What is left then is pods that are followed, without lines.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from trainplane.hub.logarchive import volume
from trainplane.hub.logarchive.keptjob import in_turn
from trainplane.hub.logarchive.retention import NOTHING, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.podindex import PodIndex
    from trainplane.hub.logarchive.keptjob import KeptJob, KeptPod


def shrink(job: KeptJob, goal: Usage) -> Usage:
    """Remove of a job what it has more than a goal allows, as far as that goes; return what this freed."""
    freed = NOTHING
    for step in (_former_pods, _former_runs, _pods_if_files, _lines, _pods):
        things = step(job, goal)
        while not (job.usage - freed).within(goal):
            gone = next(things, None)
            if gone is None:
                break
            freed += gone
    return freed


def _former_pods(job: KeptJob, _: Usage) -> Iterator[Usage]:
    last: dict[PodIndex, KeptPod] = {}
    for pod in in_turn(job.pods.values()):
        last[pod.index] = pod
    yield from _remove(job, [pod for pod in job.pods.values() if last[pod.index] is not pod])


def _former_runs(job: KeptJob, _: Usage) -> Iterator[Usage]:
    for pod in in_turn(job.pods.values()):
        newest = {container: pod.newest_run(container) for container in {name for name, _ in pod.runs}}
        for container, run in sorted(pod.runs, key=lambda entry: entry[1]):
            if run >= newest[container]:
                continue
            journal = pod.runs[container, run]
            # That the run before the last has ended must stay known, or it would be read anew.
            mark = run == newest[container] - 1
            yield journal.drop(mark=mark)
            if not mark and journal.ended is not None:
                del pod.runs[container, run]


def _pods_if_files(job: KeptJob, goal: Usage) -> Iterator[Usage]:
    if job.usage.files > goal.files:
        yield from _pods(job, goal)


def _lines(job: KeptJob, _: Usage) -> Iterator[Usage]:
    longest = [(-journal.size, number, journal) for number, journal in enumerate(job.journals) if journal.segments]
    heapq.heapify(longest)
    while longest:
        number, journal = heapq.heappop(longest)[1:]
        yield journal.drop_oldest()
        if journal.segments:
            heapq.heappush(longest, (-journal.size, number, journal))


def _pods(job: KeptJob, _: Usage) -> Iterator[Usage]:
    yield from _remove(job, job.pods.values())


def _remove(job: KeptJob, pods: Iterable[KeptPod]) -> Iterator[Usage]:
    for pod in in_turn([pod for pod in pods if not pod.is_held]):
        usage = pod.usage
        for journal in pod.runs.values():
            journal.close()
        volume.remove(pod.folder)
        del job.pods[pod.uid]
        yield usage
