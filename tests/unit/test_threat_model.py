"""The threat model names the tests that hold it, and leaves none out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_of_attacks_is_in_the_threat_model_and_every_name_there_is_a_file() -> None:
    named = set(re.findall(r"`(tests/security/[\w/]+\.py)`", (ROOT / "docs/security.md").read_text()))
    attacks = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests/security").rglob("test_*.py")
        if "mark.attack" in path.read_text()
    }
    assert attacks <= named
    assert all((ROOT / name).is_file() for name in named)
