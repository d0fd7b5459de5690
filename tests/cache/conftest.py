from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.versity import Store, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A real S3 server."""
    with serving(tmp_path_factory.mktemp("s3")) as running:
        yield running
