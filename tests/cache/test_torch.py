"""The dataset in torch's own loaders: the lab's torch, on this machine, with our code and a cache beside it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.images import IMAGES
from tests.cache.loopback import Cluster, cluster
from tests.unit.cache.data import write_parquet
from trainplane.cache.manifest import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = REPOSITORY / "build/torchdata"
ROWS = 20_000


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("cache")
    write_parquet(root / "data", 12_000, 8_000)
    source = Source(kind="parquet", location=str(root / "data"), block_bytes=16 << 10)
    with cluster(source, root / "disks") as running:
        yield running


def torch_python() -> tuple[list[str], dict[str, str]]:
    """Return the command of the image's Python, run where its layers lie, and its environment."""
    roots = [IMAGES[name].built() / "root" for name in ("torch", "python")]
    folders = (
        "",
        "x86_64-linux-gnu",
        "x86_64-linux-gnu/blas",
        "x86_64-linux-gnu/lapack",
        "x86_64-linux-gnu/openmpi/lib",
    )
    libraries = ":".join(str(root / "usr/lib" / folder) for root in roots for folder in folders)
    loader = roots[1] / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    paths = (REPOSITORY / "src", PACKAGES, roots[0] / "usr/lib/python3/dist-packages")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PYTHONHOME": str(roots[1] / "usr"),
        "PYTHONPATH": ":".join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    return [str(loader), "--library-path", libraries, str(roots[1] / "usr/bin/python3.13")], env


def test_stateful_loaders_stop_in_mid_epoch_and_go_on_in_another_world(cache: Cluster) -> None:
    command, env = torch_python()
    script = [str(Path(__file__).with_name("torch_job.py")), cache.address, str(ROWS)]
    done = subprocess.run([*command, *script], env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
