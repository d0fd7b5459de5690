"""What a run found: a crash with the input that brings it about, kept in a file to replay."""

from __future__ import annotations

import hashlib
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lab.paths import REPOSITORY
from tests.security.fuzz.mutations import copied, encode, places_of
from tests.security.fuzz.target import BrokenPromiseError
from tests.security.fuzz.watchdog import HangError, alarm, innermost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.security.fuzz.target import Target

FOLDER: Final = REPOSITORY / "build/fuzz"
_REPLAY: Final = "python -m tests.security.fuzz --replay"
_TRIES: Final = 400
_TRY_SECONDS: Final = 10.0
"""How many inputs are tried, and for how much CPU time, to make one smaller."""


@dataclass(frozen=True)
class Finding:
    """One fault, by where it is: many inputs lead to the same."""

    target: str
    kind: str
    """`crash`, `hang` or `memory`."""
    where: str
    """The innermost line of ours."""
    what: str
    data: bytes

    @property
    def mark(self) -> str:
        """What tells findings apart."""
        return f"{self.target} {self.kind} {self.where}"

    @property
    def path(self) -> Path:
        """The file that has the input."""
        return FOLDER / f"{self.target}-{hashlib.sha256(self.mark.encode()).hexdigest()[:8]}"

    def save(self) -> None:
        """Write the input to its file."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.data)

    def __str__(self) -> str:
        file = self.path.relative_to(REPOSITORY)
        return f"{self.kind} in {self.target} at {self.where}: {self.what}\n  replay: {_REPLAY} {file}"


def attempt(target: Target, data: bytes) -> tuple[str, Finding | None]:
    """Run an input under the alarm; return what became of it, and what it found."""
    outcome, kind, where, what = "", "", "", ""
    with alarm() as noted:
        try:
            outcome = target.run(data)
        except HangError:
            pass
        except MemoryError as error:
            kind, where, what = "memory", _where(error), "MemoryError"
        except Exception as error:  # noqa: BLE001 whatever comes out is what is looked for
            kind, what = "crash", f"{type(error).__name__}: {error}"[:300]
            promise = str(error)[:80] if isinstance(error, BrokenPromiseError) else _where(error)
            where = f"{type(error).__name__} {promise}"
    if noted.rang:
        kind, where, what = "hang", noted.rang, "more than a second of CPU"
    return kind or outcome, Finding(target.name, kind, where, what, data) if kind else None


def _where(error: BaseException) -> str:
    return innermost(traceback.extract_tb(error.__traceback__))


def minimised(target: Target, finding: Finding) -> Finding:
    """Return the finding with an input as small as a few hundred tries make it. A hang costs too much to try again."""
    if finding.kind != "crash":
        return finding
    best, tries = finding, 0
    going = True
    end = time.process_time() + _TRY_SECONDS
    while going and tries < _TRIES and time.process_time() < end:
        going = False
        for data in _smaller(best.data):
            tries += 1
            if tries >= _TRIES or time.process_time() > end:
                break
            found = attempt(target, data)[1]
            if found is not None and found.mark == finding.mark and len(found.data) < len(best.data):
                best, going = found, True
                break
    return best


def _smaller(data: bytes) -> Iterator[bytes]:
    """Yield inputs that lack something: a part of the tree if it is JSON, else of the bytes; large parts first."""
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield from _shorter(data)
        return
    places = places_of(tree)
    paths = sorted(range(len(places)), key=lambda place: -_weight(places[place][0][places[place][1]]))
    for place in paths:
        less = copied(tree)
        holder, key = places_of(less)[place]
        del holder[key]
        yield encode(less)


def _weight(value: Any) -> int:
    return len(places_of(value)) if isinstance(value, dict | list) else len(value) if isinstance(value, str) else 0


def _shorter(data: bytes) -> Iterator[bytes]:
    size = len(data) // 2
    while size:
        for start in range(0, len(data), size):
            yield data[:start] + data[start + size :]
        size //= 2
