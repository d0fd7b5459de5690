"""What people see and do while an admin works: a tenant who looks at a job and follows its log, a team that sends more.

Each runs in a thread of its own until the block ends, and remembers the longest time that it had to wait.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from lab.engines import binary
from lab.errors import LabError
from tests.fleet.team import PATIENCE
from tests.install.fleet.jobs import QUICK, TEAM, Jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.fleet.stage import Stage

VIEW = f"/apis/hub.trainplane.dev/v1alpha1/namespaces/{TEAM}/trainjobs"
LOOK_SECONDS = 0.1
PACE_SECONDS = 2.0
"""Between two jobs. Kueue asks a worker five times a second at most, client-go's default: more would only queue."""


class Activity:
    """Something that goes on in a thread."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(PATIENCE + 30)
        assert not self._thread.is_alive(), f"{type(self).__name__} does not come to its end"

    def _run(self) -> None:
        raise NotImplementedError


class Looks(Activity):
    """Asks again and again for something that should be well, and remembers for how long it was not."""

    def __init__(self, ask: Callable[[], str]) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.looks = 0
        self.gap = 0.0
        """The longest time between two looks at which all was well."""
        self._ask = ask

    def _run(self) -> None:
        well = time.monotonic()
        while not self._ended.wait(LOOK_SECONDS):
            problem = self._ask()
            self.looks += 1
            self.gap = max(self.gap, time.monotonic() - well)
            if problem:
                self.problems.append(problem)
            else:
                well = time.monotonic()


def seen_by(stage: Stage, user: str, job: str, pods: int) -> Callable[[], str]:
    """Return a question: what is wrong with a running job as a user sees it? Nothing is the empty text."""

    def ask() -> str:
        try:
            with stage.hub.connection(timeout=20, user=user) as connection:
                status = json.loads(connection.send("GET", f"{VIEW}/{job}"))["status"]
        except (LabError, OSError) as error:
            return str(error)
        shown = {"state": status["state"], "readyPods": status["readyPods"], "problem": status.get("problem")}
        return "" if shown == {"state": "Running", "readyPods": pods, "problem": None} else str(shown)

    return ask


def connected(stage: Stage) -> Callable[[], str]:
    """Return a question: which worker does Kueue not reach?"""

    def ask() -> str:
        found = []
        for cluster in stage.api().list("multikueueclusters"):
            (active,) = [one for one in cluster["status"]["conditions"] if one["type"] == "Active"]
            if active["status"] != "True":
                found.append(f"{cluster['metadata']['name']}: {active['reason']}: {active['message']}")
        return "; ".join(found)

    return ask


class Follower(Activity):
    """Follows a log as a user, to its end."""

    def __init__(self, kubeconfig: Path, job: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.delay = 0.0
        """The longest time from a line's own to when it was read."""
        self.code: int | None = None
        self._command = [
            *(binary("kubectl"), f"--kubeconfig={kubeconfig}", "get", "--raw"),
            f"{VIEW}/{job}/log?follow=true&timestamps=true",
        ]

    def _run(self) -> None:
        with subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True) as kubectl:
            for line in kubectl.stdout or ():
                moment, _, text = line.rstrip("\n").partition(" ")
                self.lines.append(text)
                if len(self.lines) > 1:  # what was printed before somebody looked is not late
                    self.delay = max(self.delay, time.time() - datetime.fromisoformat(moment).timestamp())
        self.code = kubectl.returncode


class Sender(Activity):
    """Sends small jobs, one after the other, and sees that each of them ends."""

    def __init__(self, jobs: Jobs) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.refused: list[str] = []
        self.slowest = 0.0
        """The longest time from a job's creation to its end on the hub."""
        self._jobs = jobs
        self._open: dict[str, float] = {}

    @property
    def lost(self) -> list[str]:
        """Jobs that have not ended."""
        return sorted(self._open)

    def _run(self) -> None:
        for number in itertools.count():
            if self._ended.wait(PACE_SECONDS):
                break
            self._send(f"quick-{number}")
            self._look()
        deadline = time.monotonic() + PATIENCE
        while self._open and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
            self._look()

    def _send(self, name: str) -> None:
        try:
            self._jobs.submit(name, QUICK)
        except Exception as error:  # noqa: BLE001 whatever refuses it, it counts
            self.refused.append(f"{name}: {error}")
            return
        self.sent.append(name)
        self._open[name] = time.monotonic()

    def _look(self) -> None:
        listed: list[dict[str, Any]] = self._jobs.stage.api().list("trainjobs", TEAM)
        for job in listed:
            name, conditions = job["metadata"]["name"], job.get("status", {}).get("conditions", ())
            if name in self._open and any(one["type"] == "Complete" and one["status"] == "True" for one in conditions):
                self.slowest = max(self.slowest, time.monotonic() - self._open.pop(name))
