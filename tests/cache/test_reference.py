"""The reference's example client against our cache, unchanged: its code is taken from the reference's own notebook."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from tests.cache.loopback import Cluster, cluster
from tests.unit.cache.data import write_parquet
from trainplane.cache.front import Behind, Front
from trainplane.cache.manifest import Source
from trainplane.cache.serving import Door

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTS = (3_001, 2_500, 4_000)
ROWS = sum(COUNTS)
MODULES = Path(os.environ.get("GOMODCACHE") or Path.home() / "go/pkg/mod")
NOTEBOOK = MODULES / "github.com/kubeflow/trainer/v2@v2.3.0/examples/pytorch/data-cache/fine-tune-with-cache.ipynb"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("reference")
    write_parquet(root / "data", *COUNTS)
    source = Source(kind="parquet", location=str(root / "data"), block_bytes=32 << 10)
    with cluster(source, root / "disks", workers=2) as cache, fronted(cache) as front:
        yield f"grpc://127.0.0.1:{front.port}"


def fronted(cache: Cluster) -> Front:
    head = Behind(cache.head.port)
    return Front(Door(), words=head, rows=head, ready=lambda: cache.head.status.ready)


@pytest.mark.parametrize("world", [1, 3, 8])
def test_calls_of_the_references_clients_give_every_row_once(address: str, world: int) -> None:
    had: list[int] = []
    for rank in range(world):
        info = fl.connect(address).get_flight_info(fl.FlightDescriptor.for_path(str(rank), str(world)))
        for endpoint in info.endpoints:
            for location in endpoint.locations:  # all of them, as its clients do
                had += fl.FlightClient(location.uri).do_get(endpoint.ticket).read_all()["id"].to_pylist()
    assert had == list(range(ROWS))


@pytest.mark.skipif(not NOTEBOOK.exists(), reason="the reference's module is not on this machine")
@pytest.mark.parametrize(("world", "loaders"), [(1, 1), (2, 1), (2, 2)])
def test_the_references_notebook_reads_every_row_once(address: str, world: int, loaders: int) -> None:
    had: list[int] = []
    for rank in range(world):
        for loader in range(loaders):
            dataset = notebooks_dataset(rank, world, loader, loaders)(seed=1, batch_size=128)
            dataset.endpoint = address
            dataset.from_arrow_rb_to_tensor = lambda chunk: chunk.column("id").to_pylist()
            had += dataset
    assert sorted(had) == list(range(ROWS))


def notebooks_dataset(rank: int, world: int, loader: int, loaders: int) -> Any:
    """Return the class of the notebook, in a process of a training job."""
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    trees = [
        ast.parse("".join(cell["source"])) for cell in cells if "class DataCacheDataset" in "".join(cell["source"])
    ]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own = next(node for node in classes if node.name == "DataCacheDataset")
    info = SimpleNamespace(id=loader, num_workers=loaders)
    names: dict[str, Any] = {
        "os": os,
        "pa": pa,
        "FlightClient": fl.FlightClient,
        "IterableDataset": object,
        "dist": SimpleNamespace(get_world_size=lambda: world, get_rank=lambda: rank),
        "torch": SimpleNamespace(utils=SimpleNamespace(data=SimpleNamespace(get_worker_info=lambda: info))),
    }
    exec(compile(ast.Module([own], []), str(NOTEBOOK), "exec"), names)  # noqa: S102 it is what is tested
    return names["DataCacheDataset"]
