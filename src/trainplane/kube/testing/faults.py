"""Ways in which a fake API server misbehaves.

A fault says which requests it meets (`verb`, `plural`) and how often (`times`, None for always). The server asks its
faults in the order they were added; the first that matches a request is used up by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "other"]


@dataclass(kw_only=True)
class Fault:
    """What all faults share."""

    verb: Verb | None = None
    plural: str | None = None
    times: int | None = 1


@dataclass(kw_only=True)
class Refuse(Fault):
    """Answer with a Status of failure instead of acting: 410, 429, 503 and so on."""

    code: int
    reason: str = ""
    retry_after: int | None = None
    """Seconds in the Retry-After header."""
    continued: bool = False
    """Meet only the second and later pages of a list."""


@dataclass(kw_only=True)
class Drop(Fault):
    """Close the connection without an answer."""

    acted: bool = False
    """Do what was asked first, so that only the answer is lost."""


@dataclass(kw_only=True)
class Hang(Fault):
    """Take the request and never answer."""


@dataclass(kw_only=True)
class Cut(Fault):
    """Break a watch after so many events, by default in the middle of the next one."""

    after: int = 0
    mid_line: bool = True


@dataclass(kw_only=True)
class Garble(Fault):
    """Send a line that is no event after so many events, then end the watch."""

    after: int = 0


@dataclass(kw_only=True)
class Expire(Fault):
    """Send an ERROR event of code 410 after so many events, then end the watch, as a compaction does."""

    after: int = 0


@dataclass(kw_only=True)
class Silence(Fault):
    """Open a watch and send nothing, ever: no event, no bookmark, no end."""


@dataclass(kw_only=True)
class Repeat(Fault):
    """Send each event of a watch so many times."""

    copies: int = 2


@dataclass(kw_only=True)
class Reorder(Fault):
    """Send events that are ready together backwards, in groups of `window`; bookmarks keep their place."""

    window: int = 2


@dataclass(kw_only=True)
class Stale(Fault):
    """Answer a list or get as of an older revision, as a lagging replica does."""

    revision: int


@dataclass(kw_only=True)
class Pad(Fault):
    """Give each object of a watch or list an annotation of so many bytes, for very long lines."""

    size: int


@dataclass(kw_only=True)
class Dribble(Fault):
    """Send a watch in chunks of so many bytes."""

    chunk: int = 1
