"""The last words of an initializer of ours: `CAUSE: what is wrong`, and in the line below what to do.

Each cause of `initializers/errors` is a class of trouble here. What is advised is the class's remedy: the words of a
pod are quoted, and are nobody's advice.
"""

from __future__ import annotations

import re
from typing import Final

from trainplane.api import names

CAUSES: Final = {
    "Invalid": "SourceInvalid",
    "NotFound": "DataMissing",
    "Denied": "AccessDenied",
    "Expired": "CredentialsExpired",
    "NoSpace": "VolumeTooSmall",
    "Occupied": "VolumeOccupied",
    "Checksum": "DataCorrupt",
    "Hostile": "SourceHostile",
    "Changed": "SourceChanged",
    "Throttled": "SourceThrottled",
    "Unreachable": "SourceUnreachable",
    "Volume": "VolumeRefused",
    "Broken": "InitializerFailed",
}
"""The program's word for a cause → the class of the catalogue."""
CODES: Final = frozenset({1, 75})
"""Exit codes with which the program says so: nothing will mend it, or another try may."""
_SAID: Final = re.compile(rf"({'|'.join(CAUSES)}): (?=\S)")


def is_initializer(name: str | None) -> bool:
    """Return whether a container, or the replicated job of a pod, fetches a dataset or a model, or serves one."""
    return name in {names.ANCESTOR_DATASET, names.ANCESTOR_MODEL, names.ANCESTOR_CACHE}


def class_said(message: str | None) -> str | None:
    """Return the class of trouble that a termination message names; None if it is none of our initializers'."""
    found = _SAID.match(message or "")
    return CAUSES[found[1]] if found else None
