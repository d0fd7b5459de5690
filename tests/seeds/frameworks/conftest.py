"""Images that the suite's node is given when a test asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.images import IMAGES
from lab.images.containerd_root import import_into

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.cluster import Cluster


@pytest.fixture(scope="session")
def on_node(cluster: Cluster) -> Callable[[str], None]:
    """Return what gives the node an image that it has not from its start, once."""
    there = {name for name, image in IMAGES.items() if not image.on_demand}

    def give(name: str) -> None:
        if name not in there:
            import_into(cluster.sandbox, IMAGES[name])
            there.add(name)

    return give
