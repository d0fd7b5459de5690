"""Lines as they are kept: a kubelet's own (`kube.containerlogs` says what they are like), and remarks of ours."""

from __future__ import annotations

from typing import Final

from trainplane.kube import containerlogs
from trainplane.kube.containerlogs import stamp_of

NOTE: Final = b"!"
"""What a kept line begins with that is our remark and not the container's."""


def text_of(line: bytes) -> bytes:
    """Return what was printed, without the time; of a remark, its text."""
    return containerlogs.text_of(line.removeprefix(NOTE))


def note(moment: bytes, text: str) -> bytes:
    """Return a remark of ours that stands at a line's time."""
    return NOTE + (stamp_of(moment) or b"1970-01-01T00:00:00Z") + b" [trainplane] " + text.encode()
