"""The official SDK's initializers drive our program unchanged: what they write, real servers answer."""

from __future__ import annotations

import io
import json
import subprocess
from typing import TYPE_CHECKING

import obstore
import pytest

from tests.sdk.official.sdk import PYTHON
from tests.unit.initializers import servers, versity
from trainplane.initializers.console import Console
from trainplane.initializers.program import run
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM = """
import json, sys
from kubeflow.trainer import *
from kubeflow.trainer.backends.kubernetes import utils
what, source = sys.argv[1], eval(sys.argv[2])
written = getattr(utils, f"get_{what}_initializer")(source)
print(json.dumps({"STORAGE_URI": written.storage_uri, **{one.name: one.value for one in written.env or []}}))
"""
FILES = {"data/a.parquet": b"rows", "config.json": b"{}", "model.safetensors": b"weights", "twice.bin": b"no"}


def bring(what: str, source: str, folder: Path, **more: str) -> dict[str, bytes]:
    """Run our program with the variables that the official SDK writes for a source; return what arrived."""
    words = [str(PYTHON), "-c", _PROGRAM, what, source]
    more["RETRY_SECONDS"] = "10"
    env = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout) | more
    said = io.StringIO()
    assert run(what, env, folder, Console(Secrets(env), said, said, folder / "log")) == 0, said.getvalue()
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if ".trainplane" not in path.parts}


@pytest.mark.parametrize("what", ["dataset", "model"])
def test_the_hub(what: str, tmp_path: Path) -> None:
    files = {f"owner/tiny/{name}": content for name, content in FILES.items()}
    kind = f"HuggingFace{what.capitalize()}Initializer"
    source = f"{kind}(storage_uri='hf://owner/tiny', access_token='t0ken')"
    with servers.hub(servers.Site(dict(files), token="t0ken"), servers.Site(files)) as site:
        arrived = bring(what, source, tmp_path, HF_ENDPOINT=site.url)
    wanted = FILES if what == "dataset" else {name: FILES[name] for name in ("config.json", "model.safetensors")}
    assert arrived == wanted


@pytest.mark.parametrize("what", ["dataset", "model"])
def test_a_bucket(what: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    with versity.serving(tmp_path / "store") as store:
        for name, content in FILES.items():
            obstore.put(store.bucket, f"sets/one/{name}", content)
        given = {
            "endpoint": store.endpoint,
            "access_key_id": versity.KEY,
            "secret_access_key": versity.SECRET,
            "region": "us-east-1",
        }
        kind = f"S3{what.capitalize()}Initializer"
        arrived = bring(what, f"{kind}(storage_uri='s3://bucket/sets/one', **{given!r})", tmp_path / what)
    assert arrived == (FILES if what == "dataset" else {k: v for k, v in FILES.items() if not k.endswith(".bin")})
