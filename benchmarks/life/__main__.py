"""What jobs cost on one side: `python -m benchmarks.life --side ours --kueue --jobs 60`."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from benchmarks.life.lives import YARDSTICK, live
from benchmarks.life.stage import LASTS, OPERATORS, Side, runtime

if TYPE_CHECKING:
    from benchmarks.life.lives import Run


def show(run: Run) -> str:
    """Return a run as lines for a person."""
    row = run.row()
    lines = [f"{run.requests:8.2f}  requests of the operator per job"]
    lines += [f"{number:8.2f}    {what}" for what, number in row["operator_requests_per_job"].items()]
    lines += [f"{run.all_requests:8.2f}  requests of all per job"]
    for who, shares in row["requests_by_user_per_job"].items():
        first = ", ".join(f"{what} {number:.1f}" for what, number in list(shares.items())[:4])
        lines.append(f"{sum(shares.values()):8.2f}    {who}: {first}")
    lines.append("  CPU ms, kB per job")
    for engine, milliseconds in row["cpu_ms_per_job"].items():
        mark = "  (yardstick)" if engine in YARDSTICK else ""
        lines.append(f"{milliseconds:8.2f} {run.kilobytes(engine):8.1f}   {engine}{mark}")
    for name, value in run.times.items():
        if isinstance(value, float):
            lines.append(f"{value:8.3f}  {name}")
    return "\n".join(lines)


def main() -> None:
    """Bring one side up, let jobs live there and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=list(OPERATORS), default="ours")
    parser.add_argument("--kueue", action="store_true", help="through a queue of Kueue")
    parser.add_argument("--hub", action="store_true", help="through MultiKueue on a hub with two workers")
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--lasts", default=LASTS, help="how long pods run; news that comes slowly is not merged")
    arguments = parser.parse_args()
    begin = time.monotonic()
    (side,) = [Side.up_hub(arguments.side)] if arguments.hub else Side.up(arguments.side)
    try:
        if arguments.kueue and not arguments.hub:
            side.add_kueue()
        for cluster in side.clusters:
            cluster.apply(runtime(lasts=arguments.lasts))
        print(f"{time.monotonic() - begin:8.2f}  seconds to start")
        for repeat in range(arguments.repeats):
            print(show(live(side, f"life-{repeat}", arguments.jobs, kueue=arguments.kueue or arguments.hub)))
    finally:
        side.down()
    print(f"{time.monotonic() - begin:8.2f}  seconds in all")


if __name__ == "__main__":
    main()
