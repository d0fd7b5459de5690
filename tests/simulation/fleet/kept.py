"""What is kept of logs: no line twice, none out of order; where nothing breaks, all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.logarchive.lines import NOTE

if TYPE_CHECKING:
    from tests.simulation.fleet.judge import FleetJudge
    from trainplane.hub.main import Hub


def judge_logs(court: FleetJudge, hub: Hub) -> None:
    """Judge the lines that a hub server has; `court` notes what is broken."""
    for kept in hub.archive:
        for uid, pod in sorted(kept.pods.items()):
            prints = court.view.prints[pod.cluster or "hub"]
            printed = [line.rstrip(b"\n") for line in prints.lines(uid)]
            for (container, number), journal in sorted(pod.runs.items()):
                lines = [line for line in journal.since(0) if not line.startswith(NOTE)]
                where = f"{kept.record.name} {pod.name} {container} {number}"
                places = [printed.index(line) if line in printed else -1 for line in lines]
                if -1 in places:
                    court.broken("a kept line was printed", f"{where}: {lines[places.index(-1)]!r}")
                if places != sorted(set(places)):
                    court.broken("a line is kept once", f"{where}: {places}")
                if court.is_fair and journal.ended and len(places) != len(printed):
                    court.broken("a line is kept", f"{where}: {len(places)} of {len(printed)}")
