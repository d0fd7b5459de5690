from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "yarl", "yaml", "cryptography", "prometheus_client", "uvloop", "email.utils")


@pytest.mark.parametrize("module", ["client", "loopthread", "config", "loading", "transport"])
def test_importing_stays_light(module: str) -> None:
    """A fresh interpreter: what is imported here must not be paid by a notebook before it asks for something."""
    code = f"import sys, trainplane.kube.{module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
