"""`s3://` against versitygw, a real S3 server; skipped where that engine is not built (`make engines`)."""

from __future__ import annotations

import random
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import obstore
import pytest

from tests.unit.initializers import child
from tests.unit.initializers.servers import Handler, Site
from tests.unit.initializers.servers import serving as serve
from tests.unit.initializers.versity import SECRET, BadLine, Store, serving
from trainplane.initializers.schemes.roles import Keys, sign

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.initializers.conftest import Outcome, Step

CHANCE = random.Random(5)  # noqa: S311 no secret
SET = {"a.parquet": b"one", "deep/b.parquet": CHANCE.randbytes(3_000_000), "empty": b"", "ü ä+%/c#?.txt": b"3"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with serving(tmp_path_factory.mktemp("versitygw")) as served:
        for name, content in SET.items():
            obstore.put(served.bucket, f"sets/one/{name}", content)
        obstore.put(served.bucket, "sets/one-more/sibling", b"not wanted")
        obstore.put(served.bucket, "sets/one.txt", b"a file beside it")
        yield served


def run(step: Step, store: Store, uri: str, **env: str) -> Outcome:
    given = {**store.env, **env}
    outcome = step.run(uri, **given)
    assert SECRET not in outcome.out + outcome.err + outcome.message
    return outcome


@pytest.mark.parametrize("uri", ["s3://bucket/sets/one", "s3://bucket/sets/one/"])
def test_a_prefix_arrives_without_its_siblings(step: Step, store: Store, uri: str) -> None:
    outcome = run(step, store, uri)
    assert outcome.code == 0, outcome
    assert step.content() == SET
    assert "nothing to do" in run(step, store, uri).out


def test_one_object_arrives_under_its_own_name(step: Step, store: Store) -> None:
    outcome = run(step, store, "s3://bucket/sets/one/deep/b.parquet")
    assert outcome.code == 0, outcome
    assert step.content() == {"b.parquet": SET["deep/b.parquet"]}


def test_a_whole_bucket_and_patterns(step: Step, store: Store) -> None:
    outcome = run(step, store, "s3://bucket", IGNORE_PATTERNS="*.parquet,sets/one/empty")
    assert outcome.code == 0, outcome
    assert set(step.content()) == {"sets/one/ü ä+%/c#?.txt", "sets/one-more/sibling", "sets/one.txt"}


@pytest.mark.parametrize(
    ("uri", "env", "cause"),
    [
        ("s3://bucket/sets/on", {}, "NotFound"),
        ("s3://nobody/x", {}, "NotFound"),
        ("s3://bucket/sets", {"SECRET_ACCESS_KEY": "wrong-secret-key"}, "Denied"),
        ("s3://bucket/sets", {"ACCESS_KEY_ID": "nobody-key"}, "Denied"),
        ("s3://bucket/sets", {"ANONYMOUS": "true"}, "Denied"),
        ("s3://bucket/sets", {"ACCESS_KEY_ID": ""}, "Invalid"),
        ("s3://bucket/sets", {"ROLE_ARN": "arn:x", "ACCESS_KEY_ID": "", "SECRET_ACCESS_KEY": ""}, "Invalid"),
        ("s3://bucket/../x", {}, "Invalid"),
        ("s3://", {}, "Invalid"),
        ("s3://bucket/x?sig=1", {}, "Invalid"),
    ],
)
def test_what_fails_has_its_cause(step: Step, store: Store, uri: str, env: dict[str, str], cause: str) -> None:
    outcome = run(step, store, uri, **env)
    assert (outcome.cause, outcome.code) == (cause, 1), outcome
    assert step.content() == {}


def test_a_server_that_is_not_there_is_named(step: Step, store: Store) -> None:
    outcome = run(step, store, "s3://bucket/sets", ENDPOINT="http://127.0.0.1:9", RETRY_SECONDS="1")
    assert (outcome.cause, outcome.code) == ("Unreachable", 75), outcome


def test_an_object_whose_bytes_rotted_is_refused(step: Step, store: Store) -> None:
    obstore.put(store.bucket, "rotten/x", b"as it was sent", use_multipart=False)
    (store.root / "bucket/rotten/x").write_bytes(b"as it is today")
    outcome = run(step, store, "s3://bucket/rotten")
    assert (outcome.cause, outcome.code) == ("Checksum", 1), outcome


def test_keys_under_their_usual_names(step: Step, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWS_ACCESS_KEY_ID", store.env["ACCESS_KEY_ID"]), ("AWS_SECRET_ACCESS_KEY", SECRET)):
        monkeypatch.setenv(name, value)
    outcome = run(step, store, "s3://bucket/sets/one", ACCESS_KEY_ID="", SECRET_ACCESS_KEY="")
    assert outcome.code == 0, outcome
    assert step.content() == SET


@pytest.mark.parametrize("seed", range(10))
def test_over_a_line_that_breaks_the_folder_is_the_bucket(step: Step, store: Store, seed: int) -> None:
    with BadLine(store.endpoint, seed) as line:
        outcome = run(step, store, "s3://bucket/sets/one", ENDPOINT=line.endpoint, RETRY_SECONDS="60")
    assert line.cuts
    assert outcome.code == 0, outcome
    assert step.content() == SET


def test_memory_does_not_grow_with_the_object(step: Step, store: Store, tmp_path: Path) -> None:
    content = random.Random(6).randbytes(1 << 20) * 192  # noqa: S311 no secret
    obstore.put(store.bucket, "large/file.bin", content)
    env = {**store.env, "STORAGE_URI": "s3://bucket/large"}
    with child.started("dataset", env, step.folder, tmp_path / "large") as process:
        process.join(60)
    code, grown = child.ended(tmp_path / "large")
    assert code == 0
    assert (step.folder / "file.bin").stat().st_size == len(content)
    assert grown < 64 * 1024, f"{grown} KiB for an object of 192 MiB"


def test_a_signed_url_is_good_to_a_real_server(store: Store) -> None:
    keys = Keys(store.env["ACCESS_KEY_ID"], SECRET)
    url = f"{store.endpoint}/bucket/sets/one/a.parquet"
    signed = sign(url, {}, keys, ("us-east-1", "s3"), datetime.now(UTC), payload="UNSIGNED-PAYLOAD")
    assert urllib.request.urlopen(signed).read() == b"one"  # noqa: S310 http, here
    wrong = sign(url, {}, Keys(keys.key, "wrong"), ("us-east-1", "s3"), datetime.now(UTC), payload="UNSIGNED-PAYLOAD")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(wrong)  # noqa: S310 http, here
    refused.value.close()
    assert refused.value.code == 403


def _token_service(key: str, secret: str, expiration: str = "2100-01-01T00:00:00Z") -> bytes:
    names = {
        "AccessKeyId": key,
        "SecretAccessKey": secret,
        "SessionToken": "token-of-the-role",
        "Expiration": expiration,
    }
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in names.items())
    return f"<AssumeRoleResponse><Credentials>{inner}</Credentials></AssumeRoleResponse>".encode()


class _Tokens(Handler):
    """A token service that answers as a test wants."""

    def serve(self, path: str) -> None:
        del path
        self.answer(*self.site.answers["answer"])


@pytest.mark.parametrize(
    ("status", "answer", "cause"),
    [
        (403, b"<Error><Code>AccessDenied</Code></Error>", "Denied"),
        (400, b"<Error><Code>ValidationError</Code></Error>", "Denied"),
        (403, b"<Error><Message>The security token has expired</Message></Error>", "Expired"),
        (200, b"<nothing/>", "Hostile"),
        (200, _token_service("a", "b", "some day"), "Hostile"),
        (200, _token_service("test-access-key", "secret-of-the-role"), "Denied"),
    ],
)
def test_a_role_that_cannot_be_assumed_says_why(
    step: Step, store: Store, status: int, answer: bytes, cause: str
) -> None:
    """In the last row the credentials of the role are wrong: versitygw refuses what is signed with them."""
    with serve(Site(answers={"answer": (status, {}, answer)}), _Tokens) as tokens:
        given = {"ROLE_ARN": "arn:aws:iam::1:role/reader", "AWS_ENDPOINT_URL_STS": tokens.url}
        outcome = run(step, store, "s3://bucket/sets/one", **given)
    assert (outcome.cause, outcome.code) == (cause, 1), outcome
    assert "Action=AssumeRole" in tokens.asked[0].path
    assert "secret-of-the-role" not in outcome.out + outcome.err + outcome.message
    assert "token-of-the-role" not in outcome.out + outcome.err + outcome.message
