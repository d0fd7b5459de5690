"""How a measured process hands its figures to the bench that waits for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def hand_over(path: Path, figures: Mapping[str, object]) -> None:
    """Write the figures in one step: whoever waits for the file to exist never finds it empty."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(figures))
    partial.replace(path)
