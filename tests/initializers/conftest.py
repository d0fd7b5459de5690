"""One S3 server for the suite, and a step for each test, whose words are looked through for secrets."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.initializers.emulators import ACCOUNT_KEY
from tests.unit.initializers.conftest import Step
from tests.unit.initializers.sending import TOKEN
from tests.unit.initializers.versity import SECRET, Store, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.suite import SuiteReport


SECRETS = (SECRET, ACCOUNT_KEY, TOKEN)


@pytest.fixture(scope="session")
def room() -> Iterator[Path]:
    """Return a folder for what is large; pytest would keep its own for three runs."""
    with TemporaryDirectory(prefix="initializers-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def store(room: Path) -> Iterator[Store]:
    (room / "versitygw").mkdir()
    with serving(room / "versitygw") as served:
        yield served


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.fixture(autouse=True)
def _no_secrets(tmp_path: Path, count: Count) -> Iterator[None]:
    """Look for secrets in all that steps said in files, their termination messages among it."""
    yield
    for path in tmp_path.rglob("*"):
        if path.is_file() and (path.suffix in (".out", ".err", ".log") or path.name == "termination-log"):
            count(outputs_scanned=1)
            said = path.read_bytes()
            assert not [secret for secret in SECRETS if secret.encode() in said], path


class Count:
    """Adds to the suite's figures."""

    def __init__(self, report: SuiteReport) -> None:
        self._report = report

    def __call__(self, **more: float) -> None:
        for name, value in more.items():
            self._report.figure(name, self._report.figures.get(name, 0) + value)


@pytest.fixture(scope="session")
def count(report: SuiteReport) -> Count:
    return Count(report)
