"""Requests counted in an API server's audit log: who asked, by which verb, for what.

Engines of the lab run as one administrator and are told apart by the program that they say they are; ours has an
account of its own. Nothing here reads a clock or a cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ADMINISTRATOR: Final = "lab-admin"
_ACCOUNT: Final = "system:serviceaccount:"
_ENDED: Final = "ResponseComplete"
_BY_TIME: Final = ("watch",)
"""Verbs that come with time and not with jobs: a watch is opened anew every few minutes, whatever happens."""
_LEASES: Final = "leases"
_REFUSED: Final = 400

Counts = dict[str, Counter[str]]
"""Who → `verb resource/subresource` → how often."""


class Log:
    """An audit log that is read on from where it was read to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = path.stat().st_size

    def more(self) -> list[dict[str, Any]]:
        """Return the events that were written since the last call; half a line is left for the next."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def who(event: dict[str, Any]) -> str:
    """Return who asked: a service account's name, an engine's, or a user's."""
    user: str = event["user"]["username"]
    if user.startswith(_ACCOUNT):
        return user.rpartition(":")[2]
    if user == _ADMINISTRATOR:
        return str(event.get("userAgent", "")).partition("/")[0]
    return user.removeprefix("system:")


def what(event: dict[str, Any]) -> str:
    """Return what was asked, as `patch trainjobs/status`; what was refused or tried only says so."""
    thing = event.get("objectRef") or {}
    part = f"/{thing['subresource']}" if thing.get("subresource") else ""
    refused = int((event.get("responseStatus") or {}).get("code", 200))
    suffix = f" ({refused})" if refused >= _REFUSED else ""
    if "dryRun=All" in event["requestURI"]:
        suffix += " (dry run)"
    return f"{event['verb']} {thing.get('resource', event['requestURI'])}{part}{suffix}"


def count(events: Iterable[dict[str, Any]]) -> Counts:
    """Return how often who asked for what; what comes with time and not with jobs is left out."""
    counts: Counts = {}
    for event in events:
        resource = (event.get("objectRef") or {}).get("resource")
        if event["stage"] != _ENDED or event["verb"] in _BY_TIME or resource in (None, _LEASES):
            continue
        counts.setdefault(who(event), Counter())[what(event)] += 1
    return counts


def follows(events: Iterable[dict[str, Any]], name: str) -> set[str]:
    """Return the resources that somebody began to watch."""
    return {event["objectRef"]["resource"] for event in events if event["verb"] == "watch" and who(event) == name}


def total(counts: Counts, names: Iterable[str]) -> int:
    """Return the sum of all that these asked."""
    return sum(sum(counts.get(name, Counter()).values()) for name in names)
