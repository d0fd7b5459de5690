"""Recordings of real engines: one JSON Lines file per script, with its name on line 1 and one observation per line.

`recorder` and `fleet/recorder` write recordings, and `test_models` and `test_recorder` read them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

RECORDED: Final = Path(__file__).with_name("recorded")


class Observation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a script, whether it was refused, and the state in which nothing changed anymore."""

    step: list[Any]
    refused: bool
    state: dict[str, Any]


def write_recording(directory: Path, name: str, observations: Sequence[Observation]) -> Path:
    """Write the recording of a script, and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{re.sub('[^a-zA-Z ]', '', name).replace(' ', '-')}.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines([name, *observations]))
    return path


def read_recording(path: Path) -> tuple[str, list[Observation]]:
    """Return the name of a script and its observations.

    Raises ValueError with the file and the line if a line has the wrong form.
    """
    first, *others = path.read_bytes().splitlines() or [b""]
    name = _decode(f"{path}:1", first, str)
    return name, [_decode(f"{path}:{number}", line, Observation) for number, line in enumerate(others, 2)]


def _decode(place: str, line: bytes, form: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=form)
    except msgspec.DecodeError as error:
        raise ValueError(f"{place}: line has the wrong form ({error}): record the script again") from error
