"""docs/lab.md, followed to the letter: from a clone to a DDP run, and the example of a test."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from lab.cluster import clusters
from lab.paths import REPOSITORY
from tests.fenced import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

PAGE = REPOSITORY / "docs" / "lab.md"
NAME = "self-page"
_NUMBER = re.compile(r"\d+\.\d+")


def _commands() -> Iterator[tuple[str, list[str]]]:
    """Return each command with the lines that the page says it prints, for a cluster of the test's own name."""
    script, _ = blocks(PAGE, "sh")
    lines = script.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("#", "make ")):  # built already: this suite stands on it
            continue
        prints = []
        for after in lines[number + 1 :]:
            if not after.startswith("#"):
                break
            prints.append(after.lstrip("# "))
        command = line.partition(" #")[0].replace(".venv/bin/python", sys.executable)
        yield re.sub(r"-m lab (up|exec|down)", rf"-m lab \1 {NAME}", command), prints


def _run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=REPOSITORY, capture_output=True, text=True, check=False)  # noqa: S602 as the page's reader


def test_from_a_clone_to_a_ddp_run(report: SuiteReport) -> None:
    begin = time.monotonic()
    shown = 0
    try:
        for command, prints in _commands():
            done = _run(command)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            printed = {_NUMBER.sub("N", line) for line in done.stdout.splitlines()}
            assert {_NUMBER.sub("N", line) for line in prints} <= printed
            shown += len(prints)
        report.figure("page_s", time.monotonic() - begin)
        assert shown == 2
        assert NAME not in {one.name for one in clusters()}
    finally:
        _run(f"{sys.executable} -m lab down {NAME}")


def test_the_example_of_a_test(cluster: Cluster, namespace: str) -> None:
    (example,) = blocks(PAGE, "python")
    scope: dict[str, Any] = {}
    exec("from __future__ import annotations\n" + example, scope)  # noqa: S102 our own page
    scope["test_something"](cluster, namespace)
    assert cluster.get("configmap", "x", "--namespace", namespace)["metadata"]["name"] == "x"
