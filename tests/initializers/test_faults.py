"""Runs with faults and kills at points that a seed chooses, in and out.

What came is the source and what went is the output; or the cause is right, and nothing looks whole that is not.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import obstore
import pytest

from tests.size import sized
from tests.unit.initializers import child, outseeds
from tests.unit.initializers.servers import PASSING, Site, hub, seeded
from tests.unit.initializers.versity import BadLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.initializers.conftest import Count
    from tests.unit.initializers.conftest import Step
    from tests.unit.initializers.versity import Store

SEEDS = range(sized(24, full=100))
OUT_SEEDS = range(sized(16, full=100))
FINAL = {"rotten": {"Checksum"}, "longer": {"Hostile"}, "elsewhere": {"Hostile"}, "grown": {"Changed"}}
"""Faults that no try mends, and what they are called."""
SIZES = [0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2_500_000]


@dataclass
class Origin:
    """A source with bad days."""

    env: dict[str, str]
    asked: Callable[[], int]
    """How many requests it has had."""
    causes: set[str]
    """What a failure may be called."""


@contextmanager
def bad_hub(chance: random.Random, seed: int, files: dict[str, bytes]) -> Iterator[Origin]:
    """A hub whose answers, and those of its CDN, go wrong in ways that another try mends, or in one that none does."""
    final = chance.choice([*FINAL, "", "", ""])
    kinds, share = ((*PASSING, *[final] * 8), 0.6) if final else (PASSING, 0.3)
    named = {f"owner/set/{name}": content for name, content in files.items()}
    site, cdn = Site(named, seeded(seed, share, kinds)), Site(named, seeded(seed + 1, share, kinds))
    with hub(site, cdn):
        env = {"STORAGE_URI": "hf://owner/set", "HF_ENDPOINT": site.url}
        yield Origin(env, lambda: len(site.asked) + len(cdn.asked), FINAL.get(final, set()))


@contextmanager
def bad_line(store: Store, seed: int, files: dict[str, bytes]) -> Iterator[Origin]:
    """A real S3 server behind a line that is cut."""
    for name, content in files.items():
        obstore.put(store.bucket, f"faults/{seed}/{name}", content)
    with BadLine(store.endpoint, seed) as line:
        env = {**store.env, "STORAGE_URI": f"s3://bucket/faults/{seed}", "ENDPOINT": line.endpoint}
        yield Origin(env, lambda: line.connections, set())


@pytest.mark.parametrize("seed", SEEDS)
def test_the_folder_is_the_source_or_the_cause_is_right(
    step: Step, store: Store, tmp_path: Path, count: Count, seed: int
) -> None:
    count(faults=1, faults_in=1, wrong_folders=1, wrong_folders_in=1)
    chance = random.Random(seed)  # noqa: S311 no secret
    source = {
        f"{'deep/' * chance.randrange(3)}{index}.{chance.choice(['json', 'safetensors'])}": chance.randbytes(
            chance.choice(SIZES)
        )
        for index in range(chance.randrange(1, 7))
    }
    with bad_line(store, seed, source) if seed % 3 == 2 else bad_hub(chance, seed, source) as origin:
        env = {**origin.env, "PART_MIB": "1", "RETRY_SECONDS": "20"}
        for kill in range(chance.randrange(3)):
            with child.started("dataset", env, step.folder, tmp_path / f"killed-{kill}") as process:
                at = origin.asked() + chance.randrange(1, 12)
                while process.is_alive() and origin.asked() < at:
                    time.sleep(0.002)
                process.kill()
        with child.started("dataset", env, step.folder, tmp_path / "last") as process:
            process.join(60)
        code, _ = child.ended(tmp_path / "last")
    if code == 0:
        assert step.content() == source
        assert (step.folder / ".trainplane/complete").exists()
    else:
        message = (tmp_path / "last.log").read_text()
        assert message.partition(":")[0] in origin.causes, message
        # What has its name is whole, whatever became of the rest.
        assert step.content().items() <= source.items()
        assert not (step.folder / ".trainplane/complete").exists()
    # Counted as wrong until here, so that whatever a run dies of is seen.
    count(wrong_folders=-1, wrong_folders_in=-1)


@pytest.mark.parametrize("seed", OUT_SEEDS)
def test_the_output_is_sent_or_the_cause_is_right(store: Store, tmp_path: Path, count: Count, seed: int) -> None:
    count(faults=1, faults_out=1, outputs_lost=1)
    day = outseeds.run(seed, tmp_path, store)
    count(outputs_lost=-1, outputs_sent=day.sent)
