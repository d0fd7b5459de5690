"""Mirrors pods as the operator does and prints what that costs: run by itself, so that its memory is its own."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from pathlib import Path

import msgspec

from trainplane.operator.pods import SeenPod, news, pod_store


def _megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main(count: int, template: str) -> None:
    """Mirror so many copies of a pod, change each once, and print memory and time."""
    store = pod_store()
    before, begun, number = _megabytes(), time.process_time(), 0
    for version in (1, 2):
        for number in range(count):
            text = template.replace("POD-NAME", f"job-{number}").replace("VERSION", str(version * count + number))
            for change in store.put(store.read(msgspec.Raw(text.encode()))):
                news(change)
    seconds = time.process_time() - begun
    assert len(store) == count
    assert store.decode(next(iter(store)), SeenPod) is not None
    sys.stdout.write(json.dumps({"mb": _megabytes() - before, "us_per_change": seconds / (2 * count) * 1e6}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.read())
