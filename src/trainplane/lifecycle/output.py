"""What became of a TrainJob's output, from what its sender said at its end. Pure.

A TrainJob that says where its output goes is Complete when it is there, and Failed if it is not: a model that nobody
can read was not trained. Either end comes with the condition OutputSent, which stands before it, since who shows one
condition shows the last.

What a sender says comes from a user's pod. It can lie about its own output and nothing else: what is kept of it is
numbers, a digest, and sentences of bounded length without control characters.

The sentence of OutputSent is read back (`read_sent`): on a hub it is all that MultiKueue brings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from trainplane.api import names
from trainplane.api.meta import Condition, upsert

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.api.trainjob import TrainJobStatus

MANIFEST_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_LETTERS: Final = 512
"""Of each sentence of a sender."""
_CAUSE: Final = re.compile(r"[A-Za-z]{1,40}")
_MOST: Final = 2**63
_SENT: Final = re.compile(
    r"sent (?P<files>\d{1,19}) files?, (?P<bytes>\d{1,19}) bytes? to (?P<uri>\S{1,1024}), "
    rf"manifest (?P<digest>{MANIFEST_DIGEST.pattern})"
)
_SILENT: Final = "its sender ended without a word that can be read"
_SILENT_REMEDY: Final = f"see the log of container {names.OUTPUT} in the first pod that trains"


class _Said(msgspec.Struct, frozen=True):
    """The message that a sender leaves."""

    output: str = ""
    files: int = 0
    bytes: int = 0
    digest: str = ""
    cause: str = ""
    message: str = ""
    remedy: str = ""


class Sent(NamedTuple):
    """Output that arrived."""

    files: int
    bytes: int
    digest: str
    """Of the manifest, which has those of all files."""


@dataclass(frozen=True, slots=True)
class Unsent:
    """Output that did not arrive."""

    cause: str = ""
    """One of the causes of docs/data.md; empty if the sender told none."""
    message: str = _SILENT
    remedy: str = _SILENT_REMEDY


def read_end(message: str | None) -> Sent | Unsent:
    """Return what a sender's last message says; anything may stand there."""
    try:
        said = msgspec.json.decode((message or "").strip(), type=_Said)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Unsent()
    if said.output == "sent":
        fits = 0 <= said.files < _MOST and 0 <= said.bytes < _MOST and MANIFEST_DIGEST.fullmatch(said.digest)
        return Sent(said.files, said.bytes, said.digest) if fits else Unsent()
    cause = said.cause if _CAUSE.fullmatch(said.cause) else ""
    if said.output not in {"unsent", "none"} or not said.message:
        return Unsent(cause)
    return Unsent(cause, _plain(said.message), _plain(said.remedy) or _SILENT_REMEDY)


def conclude(status: TrainJobStatus, end: Sent | Unsent, uri: str, now: datetime) -> TrainJobStatus:
    """Return the status of a TrainJob whose JobSet is complete, with what became of its output."""
    others = [one for one in status.conditions if one.type not in {names.COMPLETE, names.OUTPUT_SENT}]
    if isinstance(end, Sent):
        complete = next(one for one in status.conditions if one.type == names.COMPLETE)
        sent = Condition(names.OUTPUT_SENT, "True", names.REASON_OUTPUT_SENT, sent_sentence(end, uri))
        return msgspec.structs.replace(status, conditions=[*upsert(others, sent, now), complete])
    cause = f"{end.cause}: " if end.cause else ""
    text = f"training ended well, and what it made could not be sent to {uri}: {cause}{end.message}. Do: {end.remedy}"
    for kind, truth in ((names.OUTPUT_SENT, "False"), (names.FAILED, "True")):
        others = upsert(others, Condition(kind, truth, names.REASON_OUTPUT_NOT_SENT, text), now)
    return msgspec.structs.replace(status, conditions=others)


def sent_sentence(sent: Sent, uri: str) -> str:
    """Return the sentence of OutputSent."""
    files = f"{sent.files} file{'s' * (sent.files != 1)}"
    return f"sent {files}, {sent.bytes} byte{'s' * (sent.bytes != 1)} to {uri}, manifest {sent.digest}"


def read_sent(sentence: str) -> Sent | None:
    """Return what the sentence of OutputSent says; None if it is none."""
    found = _SENT.fullmatch(sentence)
    return None if found is None else Sent(int(found["files"]), int(found["bytes"]), found["digest"])


def _plain(text: str) -> str:
    """Return a sentence without what a terminal would obey, and not longer than anybody reads."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:_LETTERS]).strip().rstrip(".")
