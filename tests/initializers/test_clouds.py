"""`gs://` and `az://` against emulators, in both directions as far as these go."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from tests.initializers import emulators
from tests.unit.initializers.sending import Output, check
from tests.unit.initializers.versity import BadLine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.initializers.emulators import Emulator
    from tests.unit.initializers.conftest import Step

pytestmark = pytest.mark.full

CHANCE = random.Random(8)  # noqa: S311 no secret
SET = {"a.parquet": b"one", "deep/b.parquet": CHANCE.randbytes(12_000_000), "ü ä+%/c.txt": b"3"}


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    objects = {f"sets/one/{name}": content for name, content in SET.items()}
    with emulators.google(tmp_path_factory.mktemp("google"), {**objects, "sets/one-more/x": b"no"}) as served:
        yield served


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulators.azure(tmp_path_factory.mktemp("azure")) as served:
        yield served


def test_google_s_objects_come(step: Step, google: Emulator) -> None:
    outcome = step.run("gs://bucket/sets/one", **google.google)
    assert outcome.code == 0, outcome
    assert step.content() == SET


def test_what_google_does_not_have_is_named(step: Step, google: Emulator) -> None:
    outcome = step.run("gs://bucket/sets/on", **google.google)
    assert (outcome.cause, outcome.code) == ("NotFound", 1), outcome


def test_the_emulator_of_google_s_takes_no_objects(tmp_path: Path, google: Emulator) -> None:
    """What docs/data.md says: it does not know the API that our library writes with. Should it learn, test more."""
    output = Output(tmp_path)
    output.write({"model.bin": b"1"})
    # Writing without credentials is nothing that our library does; these ask nobody for a token.
    nobody = dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    key = json.dumps({"gcs_base_url": google.endpoint, "disable_oauth": True, **nobody})
    ended = output.send("gs://bucket/out", {"ENDPOINT": google.endpoint, "GOOGLE_SERVICE_ACCOUNT_KEY": key})
    assert ended.output == "unsent", ended
    assert "invalid uploadType" in ended.message["message"]


def test_azure_takes_an_output_and_gives_it_back(tmp_path: Path, step: Step, azure: Emulator) -> None:
    output = Output(tmp_path)
    output.write(SET)
    ended = output.send("az://bucket/out/one", azure.azure)
    assert ended.output == "sent", ended
    outcome = step.run("az://bucket/out/one", **azure.azure)
    assert outcome.code == 0, outcome
    assert check(step.content(), SET) is not None
    assert emulators.ACCOUNT_KEY not in ended.said + outcome.out + outcome.err + outcome.message


@pytest.mark.parametrize("seed", range(5))
def test_azure_over_a_line_that_breaks(tmp_path: Path, step: Step, azure: Emulator, seed: int) -> None:
    output = Output(tmp_path)
    output.write(SET)
    with BadLine(azure.endpoint, seed) as line:
        env = {**azure.azure, "ENDPOINT": f"{line.endpoint}/{emulators.ACCOUNT}", "RETRY_SECONDS": "60"}
        ended = output.send(f"az://bucket/bad/{seed}", env)
        assert ended.output == "sent", ended
        outcome = step.run(f"az://bucket/bad/{seed}", **env)
    assert line.cuts
    assert outcome.code == 0, outcome
    assert check(step.content(), SET) is not None


@pytest.mark.parametrize(
    ("uri", "env", "cause"),
    [
        ("az://bucket/nothing", {}, "NotFound"),
        ("az://nobody/sets", {}, "NotFound"),
        ("az://bucket/out", {"AZURE_STORAGE_ACCOUNT_KEY": "d3Jvbmc="}, "Denied"),
        ("az://bucket/out", {"ANONYMOUS": "true", "AZURE_STORAGE_ACCOUNT_KEY": ""}, "Denied"),
    ],
)
def test_what_azure_refuses_is_named(step: Step, azure: Emulator, uri: str, env: dict[str, str], cause: str) -> None:
    outcome = step.run(uri, **{**azure.azure, **env})
    assert (outcome.cause, outcome.code) == (cause, 1), outcome
