"""What an admin has at hand: our image, built once for the run."""

from __future__ import annotations

import pytest

from lab.images import trainplane
from tests.install.image import Archive


@pytest.fixture(scope="session")
def archive() -> Archive:
    path = trainplane.OUTPUT / "trainplane.tar"
    assert path.exists(), "the image is not built: run `make image`"
    return Archive.read(path)
