"""What a kill -9 leaves, two jobs on one folder, and memory: the program in processes of its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers import child
from tests.unit.initializers.servers import Asked, Site, serving

if TYPE_CHECKING:
    from tests.unit.initializers.conftest import Step

MIB = 1 << 20
CONTENT = random.Random(3).randbytes(12 * MIB + 5)  # noqa: S311 no secret
ENV = {"PART_MIB": "1", "PARALLEL": "2", "RETRY_SECONDS": "20"}


def _until(condition: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def test_after_a_kill_only_parts_under_way_are_fetched_again(step: Step, tmp_path: Path) -> None:
    def slowly(_: Asked) -> str:
        time.sleep(0.05)
        return ""

    site = Site({"file.bin": CONTENT}, slowly)
    with serving(site):
        env = {**ENV, "STORAGE_URI": f"{site.url}/file.bin"}
        with child.started("dataset", env, step.folder, tmp_path / "first") as process:
            _until(lambda: site.sent > 6 * MIB)
            process.kill()
            process.join()
        assert step.content() == {}
        with child.started("dataset", env, step.folder, tmp_path / "second") as process:
            process.join(20)
        assert child.ended(tmp_path / "second")[0] == 0
    assert step.content() == {"file.bin": CONTENT}
    again = site.sent - len(CONTENT)
    # Two parts, and two that were not yet noted; and the byte that each run asks for.
    assert again <= 4 * MIB + 2, f"{again} bytes were fetched twice"


def test_two_jobs_on_one_claim_share_a_download(step: Step, tmp_path: Path) -> None:
    site = Site({"file.bin": CONTENT}, lambda _: "slow")
    with serving(site):
        env = {**ENV, "STORAGE_URI": f"{site.url}/file.bin"}
        with (
            child.started("dataset", env, step.folder, tmp_path / "a") as one,
            child.started("dataset", env, step.folder, tmp_path / "b") as other,
        ):
            one.join(20)
            other.join(20)
        assert child.ended(tmp_path / "a")[0] == child.ended(tmp_path / "b")[0] == 0
    assert step.content() == {"file.bin": CONTENT}
    assert site.sent == len(CONTENT) + 1
    said = sorted((tmp_path / f"{name}.out").read_text().count("nothing to do") for name in "ab")
    assert said == [0, 1]


def test_a_dead_holder_loses_the_lock(step: Step, tmp_path: Path) -> None:
    site = Site({"file.bin": CONTENT}, lambda _: "silent" if len(site.asked) < 6 else "")
    with serving(site):
        env = {**ENV, "STORAGE_URI": f"{site.url}/file.bin", "STALL_SECONDS": "30"}
        with child.started("dataset", env, step.folder, tmp_path / "dead") as holder:
            _until(lambda: len(site.asked) >= 3)
            with child.started("dataset", env, step.folder, tmp_path / "next") as other:
                _until(
                    lambda: "waiting" in (tmp_path / "next.out").read_text() if (tmp_path / "next.out").exists() else 0
                )
                site.fault = lambda _: ""
                holder.kill()
                other.join(20)
        assert child.ended(tmp_path / "next")[0] == 0
    assert step.content() == {"file.bin": CONTENT}


def test_memory_does_not_grow_with_the_object(step: Step, tmp_path: Path) -> None:
    content = random.Random(4).randbytes(MIB) * 192  # noqa: S311 no secret
    with serving(Site({"file.bin": content})) as site:
        env = {"STORAGE_URI": f"{site.url}/file.bin"}
        with child.started("dataset", env, step.folder, tmp_path / "large") as process:
            process.join(60)
        code, grown = child.ended(tmp_path / "large")
    assert code == 0
    assert (step.folder / "file.bin").stat().st_size == len(content)
    assert grown < 64 * 1024, f"{grown} KiB for a file of 192 MiB"


@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace is root's to make")
def test_a_polite_end_is_heard_by_the_first_process_of_a_container(step: Step) -> None:
    """The first process of a PID namespace, as in a pod: signals that it does not listen for do not reach it."""
    site = Site({"file.bin": CONTENT}, lambda _: "silent")
    with serving(site):
        command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "trainplane.initializers"]
        env = {**os.environ, **ENV, "STORAGE_URI": f"{site.url}/file.bin"}
        with subprocess.Popen([*command, "dataset", str(step.folder)], env=env, stdout=subprocess.DEVNULL) as process:
            try:
                _until(lambda: len(site.asked) > 1)
                first = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
                os.kill(first, signal.SIGTERM)
                assert process.wait(20) == 128 + signal.SIGTERM
            finally:
                process.kill()
