from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from tests.unit.initializers.servers import COMMIT, HubHandler, Site, hub, serving
from trainplane.initializers.errors import InvalidError
from trainplane.initializers.schemes.hub import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.initializers.conftest import Step

CHANCE = random.Random(2)  # noqa: S311 no secret
MODEL = {
    "config.json": b"{}",
    "model.safetensors": CHANCE.randbytes(2_500_000),
    "original/tokenizer.model": b"tokens",
    "README.md": b"# words",
    "pytorch_model.bin": b"twice",
}
WANTED = {"config.json", "model.safetensors", "original/tokenizer.model"}
TOKEN = "hf_very-secret-token"


@pytest.fixture
def cdn() -> Site:
    return Site()


@pytest.fixture
def site(cdn: Site) -> Iterator[Site]:
    files = {f"owner/tiny/{name}": content for name, content in MODEL.items()} | {"gpt2/config.json": b"{}"}
    cdn.files = files
    with hub(Site(dict(files)), cdn) as served:
        yield served


def test_a_model_arrives_as_the_reference_brings_it(step: Step, site: Site) -> None:
    outcome = step.run("hf://owner/tiny", "model", HF_ENDPOINT=site.url, IGNORE_PATTERNS="*.msgpack,*.bin")
    assert outcome.code == 0, outcome
    assert step.content() == {name: MODEL[name] for name in WANTED}


def test_a_dataset_arrives_whole(step: Step, site: Site) -> None:
    assert step.run("hf://owner/tiny", HF_ENDPOINT=site.url).code == 0
    assert step.content() == MODEL
    assert any(asked.path.startswith("/api/datasets/") for asked in site.asked)


@pytest.mark.parametrize(
    ("uri", "names"),
    [
        ("hf://gpt2", {"config.json"}),
        ("hf://owner/tiny@v1/original", {"original/tokenizer.model"}),
        ("hf://owner/tiny/config.json", {"config.json"}),
        (f"hf://owner/tiny@{COMMIT}", WANTED),
    ],
)
def test_ids_revisions_and_paths(step: Step, site: Site, uri: str, names: set[str]) -> None:
    outcome = step.run(uri, "model", HF_ENDPOINT=site.url)
    assert outcome.code == 0, outcome
    assert set(step.content()) == names


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("hf://gpt2", ("gpt2", None, "")),
        ("hf://gpt2@main/sub/x", ("gpt2", "main", "sub/x")),
        ("hf://owner/name", ("owner/name", None, "")),
        ("hf://owner/name@refs%2Fpr%2F1/a", ("owner/name", "refs/pr/1", "a")),
        ("hf://models/owner/name", ("owner/name", None, "")),
    ],
)
def test_uris_are_read(uri: str, place: tuple[str, str | None, str]) -> None:
    assert parse("model", uri) == place


@pytest.mark.parametrize("uri", ["hf://", "hf://@x", "hf://a/b/../c"])
def test_uris_that_mean_nothing(uri: str) -> None:
    with pytest.raises(InvalidError):
        parse("model", uri)


@pytest.mark.parametrize(
    ("uri", "cause"),
    [("hf://owner/nothing", "NotFound"), ("hf://owner/tiny@v2", "NotFound"), ("hf://owner/tiny/nothing", "NotFound")],
)
def test_what_is_not_there_is_named(step: Step, site: Site, uri: str, cause: str) -> None:
    outcome = step.run(uri, "model", HF_ENDPOINT=site.url)
    assert (outcome.cause, outcome.code) == (cause, 1), outcome


def test_a_gated_repository_says_what_to_accept(step: Step, site: Site) -> None:
    site.answers["/api/models/owner/tiny/revision/main"] = (403, {"X-Error-Code": "GatedRepo"}, b"{}")
    outcome = step.run("hf://owner/tiny@main", "model", HF_ENDPOINT=site.url)
    assert outcome.cause == "Denied"
    assert "accept" in outcome.message.lower()


def test_the_token_goes_to_the_hub_and_not_to_where_its_files_lie(step: Step, site: Site, cdn: Site) -> None:
    site.token = TOKEN
    outcome = step.run("hf://owner/tiny", "model", HF_ENDPOINT=site.url, ACCESS_TOKEN=TOKEN)
    assert outcome.code == 0, outcome
    assert cdn.asked
    assert not any("authorization" in asked.headers for asked in cdn.asked)
    assert TOKEN not in outcome.out + outcome.err
    wrong = step.run("hf://owner/tiny@v1", "model", HF_ENDPOINT=site.url, ACCESS_TOKEN="hf_wrong-token-xyz")
    assert wrong.code == 1
    assert "hf_wrong-token-xyz" not in wrong.out + wrong.err + wrong.message


@pytest.mark.parametrize(("status", "cause"), [(503, "Throttled"), (429, "Throttled"), (500, "Unreachable")])
def test_a_hub_that_has_no_time_is_asked_again(step: Step, site: Site, status: int, cause: str) -> None:
    page = "/api/datasets/owner/tiny/revision/v1"
    site.answers[page] = (status, {"Retry-After": "0"}, b"")
    outcome = step.run("hf://owner/tiny@v1", HF_ENDPOINT=site.url, RETRY_SECONDS="1")
    assert (outcome.cause, outcome.code) == (cause, 75), outcome
    assert len([asked for asked in site.asked if asked.path == page]) > 1
    del site.answers[page]
    site.once[page] = [(status, {"Retry-After": "0"}, b"")] * 3
    outcome = step.run("hf://owner/tiny@v1", HF_ENDPOINT=site.url, RETRY_SECONDS="20")
    assert outcome.code == 0, outcome
    assert site.once[page] == []
    assert step.content() == MODEL


class _Elsewhere(HubHandler):
    """A hub whose second page is on another server."""

    def tree(self, repository: str) -> None:
        del repository
        link = f'<{self.site.answers["cdn"][1]["url"]}/page>; rel="next"'
        self.answer(200, {"Content-Type": "application/json", "Link": link}, b"[]")


def test_the_next_page_elsewhere_gets_no_token(step: Step, cdn: Site) -> None:
    cdn.answers["/page"] = (200, {"Content-Type": "application/json"}, b"[]")
    site = Site({"owner/tiny/x": b""}, token=TOKEN)
    with serving(cdn), serving(site, _Elsewhere):
        site.answers["cdn"] = (0, {"url": cdn.url}, b"")
        outcome = step.run("hf://owner/tiny", HF_ENDPOINT=site.url, ACCESS_TOKEN=TOKEN)
    assert outcome.cause == "NotFound", outcome
    assert [asked.path for asked in cdn.asked] == ["/page"]
    assert "authorization" not in cdn.asked[0].headers


class _Endless(HubHandler):
    """A hub whose listing never ends: each page names the next."""

    def tree(self, repository: str) -> None:
        del repository
        entries = [self.entry(f"file-{len(self.site.asked)}-{index}", b"x") for index in range(100)]
        link = f'<{self.site.url}{self.path}>; rel="next"'
        self.answer(200, {"Content-Type": "application/json", "Link": link}, json.dumps(entries).encode())


def test_a_listing_without_end_ends(step: Step) -> None:
    site = Site({"owner/tiny/x": b"x"})
    with serving(site, _Endless):
        outcome = step.run("hf://owner/tiny", HF_ENDPOINT=site.url, MAX_FILES="1000")
    assert (outcome.cause, outcome.code) == ("Hostile", 1), outcome


class _Lying(HubHandler):
    """A hub that lists one file, as a test wants it."""

    def tree(self, repository: str) -> None:
        del repository
        entry = self.entry("honest", b"x") | json.loads(self.site.files["entry"])
        self.answer(200, {"Content-Type": "application/json"}, json.dumps([entry]).encode())


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "../../evil"},
        {"path": "/etc/cron.d/evil"},
        {"path": "a\0b"},
        {"path": ".trainplane/complete"},
        {"size": -1},
        {"size": 1 << 62},
        {"oid": "none"},
    ],
)
def test_a_listing_that_lies_is_refused(step: Step, entry: dict[str, object]) -> None:
    site = Site({"owner/tiny/x": b"x", "entry": json.dumps(entry).encode()})
    with serving(site, _Lying):
        outcome = step.run("hf://owner/tiny", HF_ENDPOINT=site.url)
    assert (outcome.cause, outcome.code) == ("Hostile", 1), outcome
    assert step.content() == {}


def test_a_page_without_end_is_not_read(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainplane.initializers.schemes.hub._MAX_PAGE", 100_000)
    site = Site({"owner/tiny/x": b"x"})
    with serving(site, HubHandler):
        site.answers["/api/datasets/owner/tiny/revision/main"] = (200, {}, b"[" * 200_000)
        outcome = step.run("hf://owner/tiny@main", HF_ENDPOINT=site.url)
    assert outcome.cause == "Hostile", outcome


def test_bytes_that_are_not_those_of_the_commit_are_refused(step: Step, site: Site, cdn: Site) -> None:
    cdn.fault = lambda _: "rotten"
    outcome = step.run("hf://owner/tiny", "model", HF_ENDPOINT=site.url)
    assert (outcome.cause, outcome.code) == ("Checksum", 1)
    assert "model.safetensors" not in step.content()
