"""Where a TrainJob's output goes: the URI of its annotation, read and judged. Pure.

What a URI may hold is said by what it must not: it becomes a variable of a container (no `$`), a mount (a claim's name)
and keys in somebody's bucket (no `..`), is shown in conditions and logs (no credentials, no control characters), and a
sender that runs for hours later cannot ask back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.objectname import is_object_name

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMES: Final = ("s3", "gs", "az", "hf", "pvc")
LONGEST: Final = 1024
"""Characters of a URI: as long as the longest key of S3."""
_URI: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<place>[^/]*)(?:/(?P<path>.*))?", re.DOTALL)
_PLACE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PATH: Final = re.compile(r"[A-Za-z0-9._~@+=,/-]*")


@dataclass(frozen=True, slots=True)
class OutputUri:
    """A place that output is sent to."""

    text: str
    scheme: str
    place: str
    """The bucket, container or claim; for the hub, the repository's owner."""
    path: str

    @property
    def claim(self) -> str | None:
        """The claim that the sender needs to mount; None if it needs none."""
        return self.place if self.scheme == "pvc" else None


class OutputUriError(ValueError):
    """A text that names no place to send output to; the message is for who wrote it."""


def output_of(annotations: Mapping[str, str]) -> OutputUri | None:
    """Return where a TrainJob's annotations send its output; None if nowhere.

    Raises:
        OutputUriError: they do not say it in a way that can be followed.
    """
    text = annotations.get(names.ANNOTATION_OUTPUT)
    return None if text is None else read_output(text)


def read_output(text: str) -> OutputUri:
    """Return the place that a URI names.

    Raises:
        OutputUriError: it names none.
    """
    if len(text) > LONGEST:
        raise OutputUriError(f"has {len(text)} characters, and may have {LONGEST}")
    found = _URI.fullmatch(text)
    known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    if found is None or found["scheme"] not in SCHEMES:
        raise OutputUriError(f"must begin with one of {known}, as s3://bucket/models/mine")
    scheme, place, path = found["scheme"], found["place"], (found["path"] or "").rstrip("/")
    if "@" in place or ":" in place:
        raise OutputUriError(
            "must not carry a user or password: put credentials into a Secret, and its name into the annotation "
            f"{names.ANNOTATION_OUTPUT_SECRET}"
        )
    if not (is_object_name(place) if scheme == "pvc" else _PLACE.fullmatch(place)):
        what = {"pvc": "a claim", "hf": "an owner"}.get(scheme, "a bucket")
        raise OutputUriError(f"must name {what} behind {scheme}://, of letters, digits, '-' and '.'")
    if not _PATH.fullmatch(path):
        raise OutputUriError("must have no other characters in its path than letters, digits and ._~@+=,/-")
    parts = path.split("/") if path else []
    if any(part in {"", ".", ".."} for part in parts):
        raise OutputUriError("must have no empty part, '.' or '..' in its path")
    if scheme == "hf" and not parts:
        raise OutputUriError("must name a repository: hf://OWNER/NAME, @ a branch, then a folder if you like")
    return OutputUri(text, scheme, place, path)
