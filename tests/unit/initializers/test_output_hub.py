"""Outputs to `hf://`: one commit at a time, on a local server that speaks as much of the hub's API as is asked."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers import child
from tests.unit.initializers.hubwrite import WritableHub, committed
from tests.unit.initializers.sending import check
from tests.unit.initializers.servers import Site, seeded, serving
from trainplane.initializers.outputs.manifest import FINAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.initializers.sending import Ended, Output

# The hub's library gives its HTTP client a file in a way that is to go.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

TOKEN = "hf_very-secret-token"
CHANCE = random.Random(8)  # noqa: S311 no secret
FILES = {
    "model.safetensors": CHANCE.randbytes(3_000_000),
    "config.json": b"{}",
    "checkpoint-1/state.bin": CHANCE.randbytes(100_000),
    "checkpoint-1/README": b"words",
    "empty.bin": b"",
}


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(token=TOKEN), WritableHub) as served:
        yield served


def send(output: Output, site: Site, uri: str = "hf://owner/tuned", **env: str) -> Ended:
    ended = output.send(uri, {"HF_ENDPOINT": site.url, "ACCESS_TOKEN": TOKEN, **env})
    assert TOKEN not in ended.said
    return ended


def test_an_output_becomes_a_private_repository(output: Output, site: Site) -> None:
    output.write(FILES)
    ended = send(output, site)
    assert ended.output == "sent", ended
    assert check(committed(site, "owner/tuned"), FILES)
    commits = [asked.path for asked in site.asked if "/commit/" in asked.path]
    # The checkpoint, and all the rest with the final manifest.
    assert commits == ["/api/models/owner/tuned/commit/main"] * 2
    again = send(output, site)
    assert again.message == ended.message
    assert site.sent == 3_100_000


def test_a_folder_of_a_dataset(output: Output, site: Site) -> None:
    output.write(FILES)
    ended = send(output, site, "hf://datasets/owner/made@main/runs/1")
    assert ended.output == "sent", ended
    there = committed(site, "owner/made")
    assert all(name.startswith("runs/1/") for name in there)
    assert check({name.removeprefix("runs/1/"): body for name, body in there.items()}, FILES)
    assert any(asked.path == "/api/datasets/owner/made/commit/main" for asked in site.asked)


def test_an_older_manifest_goes_with_the_commit_that_makes_it_untrue(output: Output, site: Site) -> None:
    output.write(FILES)
    assert send(output, site).output == "sent"
    (output.folder / ".trainplane/sent").unlink()
    output.write({"checkpoint-1/state.bin": b"newer"})
    (output.folder / "bad").symlink_to("/etc/passwd")
    assert send(output, site).cause == "Hostile"
    there = committed(site, "owner/tuned")
    assert there["checkpoint-1/state.bin"] == b"newer"
    assert FINAL not in there
    (output.folder / "bad").unlink()
    assert send(output, site).output == "sent"
    assert check(committed(site, "owner/tuned"), output.content())


@pytest.mark.parametrize(
    ("uri", "env", "cause"),
    [
        ("hf://owner/tuned", {"ACCESS_TOKEN": "hf_wrong-token-xyz"}, "Denied"),
        ("hf://", {}, "Invalid"),
        ("hf://owner/tuned", {"HF_ENDPOINT": "http://127.0.0.1:9", "RETRY_SECONDS": "1"}, "Unreachable"),
    ],
)
def test_what_fails_has_its_cause(output: Output, site: Site, uri: str, env: dict[str, str], cause: str) -> None:
    output.write(FILES)
    ended = send(output, site, uri, **env)
    assert (ended.output, ended.cause) == ("unsent", cause), ended
    assert committed(site, "owner/tuned") == {}
    assert "hf_wrong-token-xyz" not in ended.said


def test_what_git_forbids_is_refused(output: Output, site: Site) -> None:
    output.write({**FILES, ".git/hooks/post-checkout": b"evil"})
    assert send(output, site).cause == "Hostile"
    assert FINAL not in committed(site, "owner/tuned")


@pytest.mark.parametrize("seed", range(4))
def test_a_hub_on_a_bad_day(output: Output, site: Site, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits a second and more between its own tries: not here."""
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    output.write(FILES)
    site.fault = seeded(seed, 0.3, ("busy", "broken", "reset", "slow", "cut"))
    ended = send(output, site, RETRY_SECONDS="8")
    assert ended.output == "sent", ended
    assert check(committed(site, "owner/tuned"), FILES)


def test_memory_does_not_grow_with_the_file(output: Output, site: Site, tmp_path: Path) -> None:
    content = random.Random(6).randbytes(1 << 20) * 192  # noqa: S311 no secret
    output.write({"model.bin": content})
    env = {"HF_ENDPOINT": site.url, "ACCESS_TOKEN": TOKEN, "OUTPUT_URI": "hf://owner/large"}
    with child.started("output", env, output.folder, tmp_path / "large") as process:
        process.join(60)
    code, grown = child.ended(tmp_path / "large")
    assert code == 0
    assert check(committed(site, "owner/large"), {"model.bin": content})
    assert grown < 64 * 1024, f"{grown} KiB for a file of 192 MiB"
