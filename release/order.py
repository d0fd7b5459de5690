"""An order: what is to be made, of which files, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Order:
    """What each part of a release is made with."""

    tree: Path
    """The commit's files."""
    work: Path
    """For what is made on the way."""
    output: Path
    """For what is published."""
    tools: Path
    """Where cyclonedx-py and pip-audit are."""
    epoch: int
    version: str
