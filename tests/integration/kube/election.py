"""Three candidates as processes, what they say, and who led when."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from tests.integration.kube.candidate import RENEW_DEADLINE
from tests.integration.kube.support import until

ROOT = Path(__file__).parents[3]
SCRIPT = Path(__file__).with_name("candidate.py")


@dataclass
class Term:
    """One identity's leadership, as wide as it can have been, and the instants at which it said that it led."""

    identity: str
    begin: float
    until: float
    term: int
    led: list[float] = field(default_factory=list)


class Record:
    """Puts the terms together from what the candidates say.

    An identity may have several: one that hears too late that it won does not lead, and stands again after others.
    """

    def __init__(self) -> None:
        self.terms: dict[tuple[str, int], Term] = {}
        """By identity and number."""

    def hear(self, words: dict[str, Any], current: str) -> str:
        """Take in a line of one candidate; returns the identity it speaks for from now on."""
        if identity := words.get("claimed"):
            until_ = words["sent"] + RENEW_DEADLINE
            begun = Term(identity, words["answered"], until_, words["term"])
            term = self.terms.setdefault((identity, words["term"]), begun)
            term.until = max(term.until, until_)
            return str(identity)
        if "resigned" in words:
            for term in self._of(current):
                term.until = min(term.until, words["at"])
        else:
            for term in self._of(words["ended"])[-1:]:  # who has led stands for election under another identity
                term.led = words["led"]
        return current

    def _of(self, identity: str) -> list[Term]:
        return [term for term in self.terms.values() if term.identity == identity]

    def overlaps(self) -> list[tuple[str, str]]:
        """Return the pairs that may have led at one instant."""
        terms = sorted((term for term in self.terms.values() if term.begin < term.until), key=lambda term: term.begin)
        found = []
        for place, earlier in enumerate(terms):
            found += [(earlier.identity, later.identity) for later in terms[place + 1 :] if later.begin < earlier.until]
        return found

    def unaccounted(self) -> list[str]:
        """Return who said that it led at an instant that its claims do not cover."""
        return [term.identity for term in self.terms.values() if term.led and not _covers(term)]


def _covers(term: Term) -> bool:
    return term.begin <= term.led[0] and term.led[-1] <= term.until


class Candidate:
    """One process; it can be ordered about, frozen, thawed, killed and started again."""

    def __init__(self, name: str, arguments: list[str], record: Record) -> None:
        self.name = name
        self._arguments = arguments
        self._record = record
        self._lives = count()
        self._current = ""
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(SCRIPT),
            *self._arguments,
            f"{self.name}{next(self._lives)}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        self._listening = asyncio.create_task(self._listen(self._process))

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            if line.endswith(b"\n"):
                self._current = self._record.hear(json.loads(line), self._current)

    def order(self, word: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        assert self._process is not None
        assert self._listening is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._listening


class Election:
    """Three candidates for one Lease."""

    def __init__(self, arguments: list[str]) -> None:
        self.record = Record()
        self.candidates = [Candidate(name, arguments, self.record) for name in ("ann", "bo", "cy")]

    async def __aenter__(self) -> Self:
        for candidate in self.candidates:
            await candidate.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for candidate in self.candidates:
            await candidate.kill()

    @property
    def handovers(self) -> int:
        return max(0, len(self.record.terms) - 1)

    def leader(self) -> Candidate:
        """Return whose identity was the latest to claim, by the API server: one that is starved hears of it late."""
        identity = max(self.record.terms.values(), key=lambda term: term.term).identity
        return next(candidate for candidate in self.candidates if identity.startswith(candidate.name))

    async def next_leader(self, since: int) -> None:
        """Wait until more identities have led than `since`."""
        await until(lambda: len(self.record.terms) > since, "the next leader", seconds=30)

    async def force(self, fault: str) -> None:
        """Take the leader's leadership away and wait for the next one."""
        leader, terms = self.leader(), len(self.record.terms)
        if fault == "freeze":
            leader.signal(signal.SIGSTOP)
            await self.next_leader(terms)
            leader.signal(signal.SIGCONT)
        elif fault == "kill":
            await leader.kill()
            await self.next_leader(terms)
            await leader.start()
        else:
            await self._order(fault, terms)

    async def _order(self, word: str, since: int) -> None:
        """Order the leader until it obeys: one that claimed late does not lead yet, and does not listen."""
        for _ in range(15):
            self.leader().order(word)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self.next_leader(since)
                return
        pytest.fail(f"nobody followed a leader that was told to {word}")
