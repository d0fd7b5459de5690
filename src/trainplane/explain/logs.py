"""The end of a log: which lines say what was wrong, and of which class that is.

Three voices are told apart. The program's own: a traceback that ended it, or the last lines before its end. The
libraries': lines in known forms (`signatures`). The launcher's: torchrun and mpirun report a process that failed,
dozens of lines in which the error itself does not stand, but sometimes the signal that killed it.

A traceback that was printed and got over is no cause: it counts only if little was said after it.

Standard output and standard error come by two pipes, and whoever writes the log may take them in either order. So a
line that tells of the end need not be the last: among the last few it counts wherever it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.explain.catalogue import class_of
from trainplane.explain.cleaning import MOST_LINES, clean_lines, tame
from trainplane.explain.signatures import complains, match_exception, match_line
from trainplane.explain.stacks import without_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

SEARCHED_LINES: Final = 120
"""Lines among which the telling ones are looked for: a launcher's report and an error before it."""
_NEAR: Final = 12
"""Lines that may follow the traceback that ended a program: those of its exit handlers."""
_AT_END: Final = 3
"""Lines after which nothing else can have been the end."""
_BACK: Final = 20
"""Lines before the end among which a library's line still tells why."""

_REPORT: Final = re.compile(
    r"torch[./]distributed[./]elastic[./]multiprocessing[./]api.*failed \(exitcode"
    r"|(mpirun|prterun|mpiexec) (detected that|noticed that)"
    r"|Primary job +terminated normally, but"
    r"|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
)
_NOISE: Final = re.compile(
    r"torch[./]distributed[./]elastic.*(closing signal|Received \d+ death signal)|^[-=*]{20,}$|^\s*$|^wandb: "
    r"|resource_tracker: |Exception ignored in|destroy_process_group\(\) was not called"
)
_EXIT: Final = re.compile(r"exitcode *: (-?\d{1,3})\b|exited on signal (\d{1,2})\b|\(signal (\d{1,2})\)")
_BY_SIGNAL: Final = {
    4: "WrongArchitecture",
    6: "NativeCrash",
    7: "SharedMemory",
    9: "OutOfMemory",
    11: "NativeCrash",
    15: "Terminated",
}
_TRACEBACK: Final = re.compile(r"^(.{0,40}?)(?:Traceback \(most recent call last\):)")
_EXCEPTION: Final = re.compile(
    r"^[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration|Empty|Full|Timeout)\b"
)
_ANY_EXCEPTION: Final = re.compile(r"^[A-Za-z_][\w.]*(?:: |:?$)")
_LINK: Final = ("During handling of the above exception", "The above exception was the direct cause")
_LOOKED_UP: Final = re.compile(
    r"^(?:KeyError|AttributeError|StopIteration|IndexError|queue\.Empty"
    r"|\w*TimeoutError|BlockingIOError|Connection\w*Error|OSError|socket\.\w+)\b"
)
"""Exceptions that are caught as a matter of course: what is raised while they are handled is the fault."""
_ABORTED: Final = "NativeCrash"
"""What libraries end with when they give up for a reason that they told before."""


class LogReading(NamedTuple):
    """What a log says."""

    cause: str | None
    """The class of what was wrong; None if the log does not tell."""
    lines: tuple[str, ...]
    """The telling lines, the one that tells most last."""
    sure: bool = False
    """Whether the program ended by this, by all that can be seen."""


class _Raised(NamedTuple):
    """An exception that was printed."""

    first: int
    """The line of its traceback's head."""
    place: int
    """The line that names it."""
    text: str
    prefix: str
    cause: str


def read_log(lines: Sequence[str]) -> LogReading:
    """Return what the last lines of a log say."""
    reading = _read(without_stacks([tame(line) for line in lines[-SEARCHED_LINES:]]))
    return reading._replace(lines=tuple(clean_lines(reading.lines)))


def _read(tamed: list[str]) -> LogReading:
    body, report = _split(tamed)
    spoken = [line for line in body if not _NOISE.search(line)]
    reported = _signal(report)
    raised = None if reported else _fatal(spoken, launched=bool(report))  # no exception ends by a signal
    if reported and reported != _ABORTED:
        return LogReading(reported, tuple((spoken or tamed)[-MOST_LINES:]), sure=False)
    if raised:
        deeper = _deeper(spoken[: raised.first], raised.cause)
        if deeper:
            return deeper
        near = len(spoken) - 1 - raised.place <= _AT_END or bool(raised.prefix)
        return LogReading(raised.cause, _excerpt(spoken, raised), sure=near)
    return _said(spoken) or LogReading(reported, tuple(_complaint(spoken or tamed)[-MOST_LINES:]))


def find_telling(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the last lines, at most so many, before a launcher's report; the very last where there is none."""
    tamed = [tame(line) for line in lines]
    body, _ = _split(tamed)
    spoken = [line for line in body if not _NOISE.search(line)]
    return tuple(clean_lines((spoken or tamed)[-most:]))


def _backwards(lines: list[str], most: int) -> range:
    """Return the places of the last lines, at most so many, the last one first."""
    return range(len(lines) - 1, max(len(lines) - 1 - most, -1), -1)


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return what was said before the launcher's last report, and that."""
    place = max((place for place, line in enumerate(lines) if _REPORT.search(line)), default=len(lines))
    return lines[:place], lines[place:]


def _signal(report: list[str]) -> str | None:
    """Return the class of the signal that killed the process that a launcher names first; None if none did."""
    for line in report:
        found = _EXIT.search(line)
        if found:
            code, *signals = found.groups()
            return _BY_SIGNAL.get(-int(code) if code else int(next(filter(None, signals))))
    return None


# -- tracebacks -------------------------------------------------------------------------------------------------------


def _fatal(lines: list[str], *, launched: bool) -> _Raised | None:
    """Return the exception that ended the program, or that of one of its ranks; None if none did."""
    chains = _chains(lines)
    if not chains:
        return None
    chosen = [_root(chain) for chain in chains]
    last = chosen[-1]
    after = len(lines) - 1 - last.place
    if after > _NEAR and not last.prefix and not launched:
        return None
    if class_of(last.cause).part == "cause":
        return last
    others = [one for one in chosen if class_of(one.cause).part == "cause" and (one.prefix != last.prefix or launched)]
    return others[0] if others else last


def _chains(lines: list[str]) -> list[list[_Raised]]:
    """Return the exceptions that were printed, those together that were raised while one was handled."""
    chains: list[list[_Raised]] = []
    for first, line in enumerate(lines):
        head = _TRACEBACK.match(line)
        if not head:
            continue
        raised = _raised(lines, first, head[1])
        if raised is None:
            continue
        before = chains[-1][-1] if chains else None
        linked = before is not None and any(
            link in between for between in lines[before.place + 1 : first] for link in _LINK
        )
        if linked:
            chains[-1].append(raised)
        else:
            chains.append([raised])
    return chains


def _raised(lines: list[str], first: int, prefix: str) -> _Raised | None:
    """Return the exception that a traceback ends with: the first line of the same voice that is not indented."""
    loose: _Raised | None = None
    for place in range(first + 1, len(lines)):
        line = lines[place]
        if not line.startswith(prefix):
            continue
        text = line[len(prefix) :]
        if text[:1].isspace() or not text:
            continue
        if _EXCEPTION.match(text):
            return _Raised(first, place, text, prefix, _class_of_exception(lines, place, prefix))
        if loose is None and _ANY_EXCEPTION.match(text):
            loose = _Raised(first, place, text, prefix, _class_of_exception(lines, place, prefix))
        if _TRACEBACK.match(line):
            break
    return loose


def _class_of_exception(lines: list[str], place: int, prefix: str) -> str:
    text = lines[place][len(prefix) :]
    found = match_exception(text)
    if found is None and text.startswith(("torch.distributed.", "RuntimeError", "torch.")) and place + 1 < len(lines):
        found = match_exception(f"{text} {lines[place + 1]}")  # torch puts the telling words on the next line
    return found or "PythonError"


def _root(chain: list[_Raised]) -> _Raised:
    """Return the exception of a chain that was the fault."""
    special = [one for one in chain if one.cause != "PythonError" and class_of(one.cause).part == "cause"]
    if special:
        return special[0]
    last = chain[-1]
    if last.cause == "PythonError":
        known = [one for one in chain if one.cause != "PythonError"]
        return known[0] if known else last
    return last if _LOOKED_UP.match(chain[0].text) else chain[0]


def _deeper(before: list[str], cause: str) -> LogReading | None:
    """Return what a library said shortly before an exception that is the consequence of something else."""
    if class_of(cause).part == "cause":
        return None
    for place in _backwards(before, _BACK):
        found = match_line(before[place], last=False)
        if found and class_of(found).part == "cause":
            return LogReading(found, tuple(before[: place + 1][-MOST_LINES:]))
    return None


def _excerpt(lines: list[str], raised: _Raised) -> tuple[str, ...]:
    """Return a traceback's last lines, of its own voice alone."""
    own = [line for line in lines[raised.first : raised.place + 1] if line.startswith(raised.prefix)]
    return tuple(own[-MOST_LINES:])


# -- without a traceback ----------------------------------------------------------------------------------------------


def _said(lines: list[str]) -> LogReading | None:
    """Return what the last lines tell in a library's words: a cause before what may follow from one."""
    found: tuple[int, str] | None = None
    for place in _backwards(lines, _BACK):
        name = match_line(lines[place], last=place >= len(lines) - _AT_END)
        if name is None:
            continue
        if class_of(name).part == "cause" and name != _ABORTED:
            found = (place, name)
            break
        found = (place, name) if found is None or found[1] == _ABORTED else found
    if found is None:
        return None
    place, name = found
    return LogReading(name, tuple(lines[: place + 1][-MOST_LINES:]), sure=place >= len(lines) - _AT_END)


def _complaint(lines: list[str]) -> list[str]:
    """Return lines that explain nothing up to that one of the last few which complains; all of them if none does."""
    for place in _backwards(lines, _AT_END):
        if complains(lines[place]):
            return lines[: place + 1]
    return lines
