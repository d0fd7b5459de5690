from __future__ import annotations

import pytest

from trainplane.kube.version import OLDEST, is_too_old, oldest, release


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("v1.31.0", (1, 31)),
        ("1.36", (1, 36)),
        ("v1.31.2-gke.1006000", (1, 31)),
        ("v1.30.4+k3s1", (1, 30)),
        ("v0.19.2", (0, 19)),
        ("", None),
        ("main", None),
        ("v1", None),
        (f"v1.{'9' * 5000}", (1, 999999)),
    ],
)
def test_the_release_of_a_version(version: str, found: tuple[int, int] | None) -> None:
    assert release(version) == found


def test_only_what_says_that_it_is_older_is_too_old() -> None:
    assert is_too_old("v1.30.14")
    assert is_too_old("v0.99.0")
    assert not any(map(is_too_old, ("v1.31.0", "v1.36.3", "v2.0.0", "", "unknown")))
    assert release(oldest()) == OLDEST
