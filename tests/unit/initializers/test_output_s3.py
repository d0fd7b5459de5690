"""Outputs to `s3://` against versitygw, a real S3 server; skipped where that engine is not built."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import obstore
import pytest

from tests.unit.initializers import child
from tests.unit.initializers.sending import check, contents
from tests.unit.initializers.versity import SECRET, BadLine, Store, serving
from trainplane.initializers.outputs.manifest import CHECKPOINT, FINAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.initializers.sending import Ended, Output

CHANCE = random.Random(7)  # noqa: S311 no secret
FILES = {
    "model.safetensors": CHANCE.randbytes(23_000_001),
    "ü ä+%/c#?~[1].txt": b"odd",
    "checkpoint-1/state": CHANCE.randbytes(6 << 20),
    "empty": b"",
    **{f"small/{index}": CHANCE.randbytes(index * 1000) for index in range(20)},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(tmp_path_factory.mktemp("versitygw")) as served:
        yield served


def send(output: Output, store: Store, path: str, **env: str) -> Ended:
    ended = output.send(f"s3://bucket/{path}", {**store.env, **env})
    assert SECRET not in ended.said
    assert ended.code == 0
    return ended


def there(store: Store, path: str) -> dict[str, bytes]:
    return contents(store.root / "bucket" / path)


def test_an_output_arrives_in_parts_and_is_not_sent_twice(output: Output, store: Store) -> None:
    output.write(FILES)
    ended = send(output, store, "models/one/")
    assert ended.output == "sent", ended
    assert check(there(store, "models/one"), FILES)
    again = send(output, store, "models/one/")
    assert again.message == ended.message
    assert "sent 0 B" in again.said
    # As anybody reads it.
    assert bytes(obstore.get(store.bucket, "models/one/model.safetensors").bytes()) == FILES["model.safetensors"]


@pytest.mark.parametrize(
    ("path", "env", "cause"),
    [
        ("x", {"SECRET_ACCESS_KEY": "wrong-secret-key"}, "Denied"),
        ("x", {"ACCESS_KEY_ID": "nobody-key"}, "Denied"),
        ("x", {"ENDPOINT": "http://127.0.0.1:9", "RETRY_SECONDS": "1"}, "Unreachable"),
        ("../x", {}, "Invalid"),
        ("x?y", {}, "Invalid"),
        ("x" * 1020, {}, "Hostile"),
    ],
)
def test_what_fails_has_its_cause(output: Output, store: Store, path: str, env: dict[str, str], cause: str) -> None:
    output.write({"model": b"x", "longer-name": b"y"})
    ended = send(output, store, path, **env)
    assert (ended.output, ended.cause) == ("unsent", cause), ended
    assert "initializer" not in ended.message["remedy"]


def test_a_bucket_that_is_not_there(output: Output, store: Store) -> None:
    output.write({"model": b"x"})
    ended = output.send("s3://nobody/x", store.env)
    assert (ended.output, ended.cause) == ("unsent", "NotFound"), ended
    assert "trainplane.dev/output" in ended.message["remedy"]


def test_what_others_replaced_meanwhile_is_sent_again(output: Output, store: Store) -> None:
    output.write(FILES)
    assert send(output, store, "models/two").output == "sent"
    obstore.put(store.bucket, "models/two/small/3", b"of somebody else")
    obstore.delete(store.bucket, "models/two/small/4")
    assert send(output, store, "models/two").output == "sent"
    assert check(there(store, "models/two"), FILES)


def test_a_manifest_that_somebody_else_left_goes_first(output: Output, store: Store) -> None:
    for name in (FINAL, f"checkpoint-1/{CHECKPOINT}"):
        obstore.put(store.bucket, f"models/three/{name}", b'{"files": [{"path": "gone"}]}')
    output.write({**FILES, "a\\b": b"refused"})
    assert send(output, store, "models/three").cause == "Hostile"
    assert check(there(store, "models/three"), FILES) is None
    (output.folder / "a\\b").unlink()
    assert send(output, store, "models/three").output == "sent"
    assert check(there(store, "models/three"), FILES)


@pytest.mark.parametrize("seed", range(4))
def test_over_a_line_that_breaks_the_bucket_is_the_folder(output: Output, store: Store, seed: int) -> None:
    output.write(FILES)
    with BadLine(store.endpoint, seed, both=True) as line:
        ended = send(output, store, f"bad/{seed}", ENDPOINT=line.endpoint, RETRY_SECONDS="60")
    assert line.cuts
    assert ended.output == "sent", ended
    assert check(there(store, f"bad/{seed}"), FILES)


class Rotten(BadLine):
    """A line that changes a byte of whatever is large, once in each of its first connections.

    In each of all of them no try might ever come through: where the server answers before it has read all, the library
    takes a new connection for the next.
    """

    kinds = ("rotten",)
    budgets = (1 << 40,)
    bad = 3


@pytest.mark.parametrize("size", [400_000, 6 << 20])
def test_bytes_that_change_on_the_way_are_sent_again(output: Output, store: Store, size: int) -> None:
    content = {"model.bin": CHANCE.randbytes(size)}
    output.write(content)
    with Rotten(store.endpoint, 0, both=True) as line:
        ended = send(output, store, f"rotten/{size}", ENDPOINT=line.endpoint, RETRY_SECONDS="20")
    assert line.cuts
    assert ended.output == "sent", ended
    assert check(there(store, f"rotten/{size}"), content)


def test_memory_does_not_grow_with_the_file(output: Output, store: Store, tmp_path: Path) -> None:
    content = random.Random(6).randbytes(1 << 20) * 192  # noqa: S311 no secret
    output.write({"model.bin": content})
    env = {**store.env, "OUTPUT_URI": "s3://bucket/large"}
    with child.started("output", env, output.folder, tmp_path / "large") as process:
        process.join(60)
    code, grown = child.ended(tmp_path / "large")
    assert code == 0
    assert check(there(store, "large"), {"model.bin": content})
    assert grown < 64 * 1024, f"{grown} KiB for a file of 192 MiB"
