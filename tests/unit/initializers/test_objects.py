"""What stores answer and what it means, and where credentials go: local servers that speak as much as is asked."""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.unit.initializers.servers import Handler, Site, serving
from trainplane.initializers.schemes.roles import Keys, sign

if TYPE_CHECKING:
    from tests.unit.initializers.conftest import Outcome, Step
    from tests.unit.initializers.sending import Output

SECRET = "secret-key-of-a-test"
TOKEN = "session-token-of-a-test"
FILES = {"set/a": b"one", "set/deep/metadata-expired-503": b"2" * 1_500_000}


class StoreHandler(Handler):
    """Lists and gives the objects of `bucket` as S3 and Google do, and as Azure does."""

    def serve(self, path: str) -> None:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        name = unquote(parts.path).removeprefix("/account").removeprefix("/bucket").lstrip("/")
        if "/answer" in self.site.answers:
            self.answer(*self.site.answers["/answer"])
        elif "list-type" in query or "comp" in query:
            self.list(query.get("prefix", [""])[0], azure="comp" in query)
        elif name in self.site.files:
            self.send_file(self.site.files[name])
        else:
            self.answer(404, {}, b"<Error><Code>NoSuchKey</Code></Error>")

    do_HEAD = Handler.do_GET  # noqa: N815 the base calls it so

    def list(self, prefix: str, *, azure: bool) -> None:
        found = {name: content for name, content in self.site.files.items() if name.startswith(prefix)}
        when = "2026-01-01T00:00:00.000Z"
        if azure:
            blobs = "".join(
                f"<Blob><Name>{name}</Name><Properties><Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT</Last-Modified>"
                f"<Content-Length>{len(content)}</Content-Length><Content-Type>x/y</Content-Type>"
                f"<Etag>{self.mark(name)}</Etag></Properties></Blob>"
                for name, content in found.items()
            )
            text = (
                f'<EnumerationResults ContainerName="bucket"><Blobs>{blobs}</Blobs><NextMarker /></EnumerationResults>'
            )
        else:
            contents = "".join(
                f"<Contents><Key>{name}</Key><Size>{len(content)}</Size><LastModified>{when}</LastModified>"
                f"<ETag>&quot;{self.mark(name)}&quot;</ETag></Contents>"
                for name, content in found.items()
            )
            text = f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
        self.answer(200, {"Content-Type": "application/xml"}, text.encode())

    def mark(self, name: str) -> str:
        return re.sub(r"[^a-z]", "-", name)

    def send_body(self, body: bytes, total: int, start: int, fault: str, *, partial: bool) -> None:
        del fault
        name = unquote(urlsplit(self.path).path).removeprefix("/account").removeprefix("/bucket").lstrip("/")
        headers = {"ETag": f'"{self.mark(name)}"', "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if partial:
            headers["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{total}"
        self.answer(206 if partial else 200, headers, body)


def s3(step: Step, site: Site, **env: str) -> Outcome:
    given = {"ENDPOINT": site.url, "ACCESS_KEY_ID": "key-id", "SECRET_ACCESS_KEY": SECRET, "SESSION_TOKEN": TOKEN}
    outcome = step.run("s3://bucket/set", **{**given, "RETRY_SECONDS": "3", **env})
    assert not {SECRET, TOKEN} & set(re.findall(r"[\w-]+", outcome.out + outcome.err + outcome.message))
    return outcome


def error(code: str, message: str = "") -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


@pytest.mark.parametrize(
    ("status", "body", "cause", "code"),
    [
        (400, error("ExpiredToken", "The provided token has expired."), "Expired", 1),
        (403, error("AccessDenied"), "Denied", 1),
        (403, error("AccessDenied", "Request has expired"), "Expired", 1),
        (403, error("InvalidAccessKeyId"), "Denied", 1),
        (403, error("x", f"you sent {SECRET} and {TOKEN}"), "Denied", 1),
        (404, error("NoSuchBucket"), "NotFound", 1),
        (503, error("SlowDown"), "Throttled", 75),
        (429, b"", "Throttled", 75),
        (500, error("InternalError"), "Unreachable", 75),
        (400, error("AuthorizationHeaderMalformed"), "Invalid", 1),
    ],
)
def test_a_stores_answer_means_a_cause(step: Step, status: int, body: bytes, cause: str, code: int) -> None:
    with serving(Site(answers={"/answer": (status, {}, body)}), StoreHandler) as site:
        outcome = s3(step, site)
    assert (outcome.cause, outcome.code) == (cause, code), outcome


class Refusing(StoreHandler):
    """A store that answers everything alike; to HEAD without words, as stores do."""

    def do_HEAD(self) -> None:  # noqa: N802 the base calls it so
        self.answer(self.site.answers["/answer"][0], {}, b"")

    def do_PUT(self) -> None:  # noqa: N802 the base calls it so
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(*self.site.answers["/answer"])


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, error("ExpiredToken", "The provided token has expired."), "Expired"),
        (403, error("AccessDenied"), "Denied"),
        (403, error("x", f"you sent {SECRET}"), "Denied"),
        (404, error("NoSuchBucket"), "NotFound"),
        (503, error("SlowDown"), "Throttled"),
        (500, error("InternalError"), "Unreachable"),
    ],
)
def test_an_answer_to_what_is_sent_means_a_cause(output: Output, status: int, body: bytes, cause: str) -> None:
    output.write({"model": b"x"})
    with serving(Site(answers={"/answer": (status, {}, body)}), Refusing) as site:
        env = {"ENDPOINT": site.url, "ACCESS_KEY_ID": "key-id", "SECRET_ACCESS_KEY": SECRET, "RETRY_SECONDS": "1"}
        ended = output.send("s3://bucket/set", env)
    assert (ended.output, ended.cause) == ("unsent", cause), ended
    assert SECRET not in ended.said
    assert "initializer" not in ended.message["remedy"]


@pytest.mark.parametrize(
    ("uri", "env"),
    [
        ("s3://bucket/set", {"ANONYMOUS": "true"}),
        ("gs://bucket/set", {"ANONYMOUS": "true"}),
        ("az://bucket/set", {"ANONYMOUS": "true", "AZURE_STORAGE_ACCOUNT_NAME": "account"}),
    ],
)
def test_objects_of_each_store_arrive_without_credentials(step: Step, uri: str, env: dict[str, str]) -> None:
    with serving(Site(dict(FILES)), StoreHandler) as site:
        outcome = step.run(uri, ENDPOINT=site.url, **env)
    assert outcome.code == 0, outcome
    assert step.content() == {name.removeprefix("set/"): content for name, content in FILES.items()}
    assert not any("authorization" in asked.headers for asked in site.asked)


def test_a_silence_within_an_object_is_taken_for_a_break(step: Step) -> None:
    released = threading.Event()
    name = "set/deep/metadata-expired-503"

    class Silent(StoreHandler):
        def send_body(self, body: bytes, total: int, start: int, fault: str, *, partial: bool) -> None:
            if not fault:
                super().send_body(body, total, start, fault, partial=partial)
                return
            self.send_response(206)
            self.send_header("ETag", f'"{self.mark(name)}"')
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{total}")
            self.end_headers()
            self.write(body[: len(body) // 2])
            released.wait(20)

    once = iter(["silent"])
    with serving(Site(FILES, lambda asked: next(once, "") if name in asked.path else ""), Silent) as site:
        try:
            outcome = s3(step, site, RETRY_SECONDS="10")
        finally:
            released.set()
    assert outcome.code == 0, outcome
    assert step.content() == {path.removeprefix("set/"): content for path, content in FILES.items()}


def test_a_part_that_fails_for_good_ends_the_others(step: Step) -> None:
    """Threads that read other parts are told, and gone when the step ends."""
    files = {f"set/{index}": b"x" * 3_000_000 for index in range(4)}

    class Refusing(StoreHandler):
        def send_file(self, content: bytes) -> None:
            if self.path.startswith("/bucket/set/3"):
                self.answer(403, {}, error("AccessDenied"))
            else:
                super().send_file(content)

    with serving(Site(files), Refusing) as site:
        outcome = s3(step, site)
    assert (outcome.cause, outcome.code) == ("Denied", 1), outcome
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("part")]


def test_an_endpoint_that_redirects_elsewhere_gets_no_token_there(step: Step, output: Output) -> None:
    with (
        serving(Site(dict(FILES)), StoreHandler) as other,
        serving(
            Site(answers={"/answer": (307, {"Location": f"{other.url}/bucket?list-type=2"}, b"")}), StoreHandler
        ) as site,
    ):
        outcome = s3(step, site)
        output.write({"model": b"x"})
        env = {"ENDPOINT": site.url, "ACCESS_KEY_ID": "key-id", "SECRET_ACCESS_KEY": SECRET, "SESSION_TOKEN": TOKEN}
        ended = output.send("s3://bucket/set", env)
    assert (outcome.cause, outcome.code) == ("Invalid", 1), outcome
    assert (ended.output, ended.cause) == ("unsent", "Invalid"), ended
    assert other.url in outcome.message
    # The token came in signed URLs, and went no further.
    assert len(site.asked) == 2
    assert not any("x-amz-security-token" in asked.headers for asked in site.asked)
    assert other.asked == []


def test_without_a_token_a_redirect_takes_no_signature_along(step: Step) -> None:
    with serving(Site(dict(FILES)), StoreHandler) as other:
        with serving(
            Site(answers={"/answer": (307, {"Location": f"{other.url}/bucket?list-type=2"}, b"")}), StoreHandler
        ) as site:
            s3(step, site, SESSION_TOKEN="")
        carried = [asked.headers for asked in other.asked]
    assert site.asked
    assert carried
    assert not any("authorization" in headers for headers in carried)


@pytest.mark.parametrize("name", ["set/../../evil", "set//x", "set/.trainplane/complete"])
def test_a_key_that_leads_elsewhere_is_refused(step: Step, name: str) -> None:
    with serving(Site({name: b"evil"}), StoreHandler) as site:
        outcome = s3(step, site)
    assert (outcome.cause, outcome.code) == ("Hostile", 1), outcome
    assert step.content() == {}


@pytest.mark.parametrize("uri", ["az://bucket/set", "gs://", "gs://bucket/a/../b", "az://"])
def test_a_uri_or_an_account_that_lacks_is_named(step: Step, uri: str) -> None:
    assert step.run(uri).cause == "Invalid"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 1),
        ({"x-amz-server-side-encryption": "AES256"}, 1),
        ({"x-amz-server-side-encryption": "aws:kms"}, 0),
    ],
)
def test_an_etag_is_an_md5_unless_the_store_encrypts_with_other_keys(
    step: Step, headers: dict[str, str], code: int
) -> None:
    class Marked(StoreHandler):
        def mark(self, name: str) -> str:
            del name
            return "0" * 32

        def end_headers(self) -> None:
            for name, value in headers.items():
                self.send_header(name, value)
            super().end_headers()

    with serving(Site({"set/a": b"one"}), Marked) as site:
        outcome = s3(step, site)
    assert (outcome.code, outcome.cause) == (code, "Checksum" if code else ""), outcome
    # The question is asked by a signed URL, which lasts five minutes and is not printed.
    assert any("X-Amz-Expires=300" in asked.path for asked in site.asked)


def test_a_listing_without_end_ends(step: Step) -> None:
    class Endless(StoreHandler):
        def list(self, prefix: str, *, azure: bool) -> None:
            del azure
            count = len(self.site.asked)
            keys = "".join(
                f"<Contents><Key>{prefix}{count}-{index}</Key><Size>1</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag></Contents>"
                for index in range(200)
            )
            text = (
                f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{count}"
                f"</NextContinuationToken>{keys}</ListBucketResult>"
            )
            self.answer(200, {}, text.encode())

    with serving(Site(), Endless) as site:
        outcome = s3(step, site, MAX_FILES="1000", RETRY_SECONDS="20")
    assert (outcome.cause, outcome.code) == ("Hostile", 1), outcome
    assert len(site.asked) < 20


def test_a_role_that_keys_assume_reads_with_its_token(step: Step) -> None:
    credentials = "".join(
        f"<{name}>{value}</{name}>"
        for name, value in (
            ("AccessKeyId", "role-key"),
            ("SecretAccessKey", "role-secret"),
            ("SessionToken", "role-token"),
            ("Expiration", "2100-01-01T00:00:00Z"),
        )
    )

    class Tokens(Handler):
        def serve(self, path: str) -> None:
            del path
            self.answer(200, {}, f"<Credentials>{credentials}</Credentials>".encode())

    with serving(Site(), Tokens) as tokens, serving(Site(dict(FILES)), StoreHandler) as site:
        outcome = s3(step, site, ROLE_ARN="arn:aws:iam::1:role/reader", AWS_ENDPOINT_URL_STS=tokens.url)
    assert outcome.code == 0, outcome
    asked = parse_qs(urlsplit(tokens.asked[0].path).query)
    assert asked["RoleArn"] == ["arn:aws:iam::1:role/reader"]
    assert asked["X-Amz-Credential"][0].startswith("key-id/")
    assert asked["X-Amz-Security-Token"] == [TOKEN]
    # First in a signed URL, to see that it is not redirected.
    assert "X-Amz-Security-Token=role-token" in site.asked[0].path
    for one in site.asked[1:]:
        assert one.headers["x-amz-security-token"] == "role-token"
        assert "Credential=role-key/" in one.headers["authorization"]


def test_a_signature_is_that_of_amazons_own_example() -> None:
    """The example of a signed GET in Amazon's description of Signature Version 4."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = "https://examplebucket.s3.amazonaws.com/test.txt"
    when = datetime(2013, 5, 24, tzinfo=UTC)
    signed = sign(url, {}, keys, ("us-east-1", "s3"), when, payload="UNSIGNED-PAYLOAD", expires="86400")
    assert signed.endswith("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
