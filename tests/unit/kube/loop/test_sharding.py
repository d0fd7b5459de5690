from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.kube.sharding import SHARDS_MAX, Holdings, Sharding, shard_of

EXPECTED = {"": 5, "default": 1, "team-a": 5, "team-b": 6, "kube-system": 3}
NAMESPACES = st.text("abcdefghijklmnopqrstuvwxyz-0123456789", max_size=63)


def test_these_shards_never_change() -> None:
    found = {name: shard_of(name, 8) for name in ("", "default", "team-a", "team-b", "kube-system")}
    assert found == EXPECTED, "another release must find a namespace in the same shard"


def test_every_process_agrees() -> None:
    code = "from trainplane.kube.sharding import shard_of; print([shard_of(f'team-{n}', 7) for n in range(50)])"
    environment = {"PYTHONHASHSEED": "4711", "PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert run.stdout.strip() == str([shard_of(f"team-{n}", 7) for n in range(50)])


@given(NAMESPACES, st.integers(1, 64))
def test_a_shard_is_one_of_those_there_are(namespace: str, shards: int) -> None:
    assert 0 <= shard_of(namespace, shards) < shards


@given(NAMESPACES, st.integers(1, 64))
def test_one_more_shard_moves_namespaces_only_to_it(namespace: str, shards: int) -> None:
    assert shard_of(namespace, shards + 1) in {shard_of(namespace, shards), shards}


def test_namespaces_spread_evenly() -> None:
    counts = Counter(shard_of(f"team-{number}", 8) for number in range(8000))
    assert len(counts) == 8
    assert all(850 < count < 1150 for count in counts.values())


@pytest.mark.parametrize("shards", [0, -1, SHARDS_MAX + 1])
def test_a_division_that_leaves_keys_alone_is_refused(shards: int) -> None:
    with pytest.raises(ValueError, match=f"shards is {shards}: give a number from 1 to"):
        Sharding(shards=shards)


def test_each_shard_has_a_lease_of_its_own() -> None:
    sharding = Sharding(shards=3, name="tp")
    assert [sharding.lease_name(shard) for shard in range(3)] == ["tp-0-of-3", "tp-1-of-3", "tp-2-of-3"]
    with pytest.raises(ValueError, match="shard is 3: there are 3"):
        sharding.lease_name(3)


def test_one_process_alone_owns_all_once_it_holds_the_lease() -> None:
    holdings = Holdings(Sharding())
    assert not holdings.owns("default")
    holdings.acquire(0)
    assert holdings.owns("default")
    assert holdings.owns("")
    holdings.release(0)
    assert not holdings.owns("default")


@given(st.sets(st.integers(0, 7)), NAMESPACES)
def test_processes_never_share_a_namespace_and_leave_none(held: set[int], namespace: str) -> None:
    sharding = Sharding(shards=8)
    ours, theirs = Holdings(sharding), Holdings(sharding)
    for shard in range(8):
        (ours if shard in held else theirs).acquire(shard)
    assert ours.held == held
    assert ours.owns(namespace) != theirs.owns(namespace)


def test_a_shard_that_does_not_exist_cannot_be_held() -> None:
    with pytest.raises(ValueError, match="shard is 1"):
        Holdings(Sharding(shards=1)).acquire(1)
