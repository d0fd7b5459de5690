"""The cache in JAX, with our code and a cache beside it. At full size alone: JAX is 500 MB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cache.loopback import cluster
from tests.unit.cache.data import write_parquet
from trainplane.cache.manifest import Source

REPOSITORY = Path(__file__).resolve().parents[2]
ROWS = 20_000


@pytest.mark.full
def test_jax_stops_in_mid_epoch_and_goes_on_in_another_world_with_sharded_arrays(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", 12_000, 8_000)
    source = Source(kind="parquet", location=str(tmp_path / "data"), block_bytes=16 << 10)
    env = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'build/jax'}", "JAX_PLATFORMS": "cpu"}
    with cluster(source, tmp_path / "disks") as cache:
        script = [sys.executable, str(Path(__file__).with_name("jax_job.py")), cache.address, str(ROWS)]
        done = subprocess.run(script, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
