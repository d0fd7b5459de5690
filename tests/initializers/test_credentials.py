"""Where credentials come from, the Secret apart: the pod's workload identity, or nowhere; and that none is printed.

The token services are servers here that answer as the clouds' do; Google's cannot be stood in for, because its address
is the library's own.
"""

from __future__ import annotations

import json
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs

import obstore
import pytest

from tests.unit.initializers.servers import Asked, Handler, Site, serving
from tests.unit.initializers.test_objects import StoreHandler
from tests.unit.initializers.versity import KEY, SECRET
from trainplane.kube.pki import CertificatePolicy, renew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.unit.initializers.conftest import Step
    from tests.unit.initializers.versity import Store

    Amazon: TypeAlias = Callable[[Site], AbstractContextManager[dict[str, str]]]

IDENTITY = "identity-token-of-the-pod"
ACCESS = "access-that-was-handed-out"
SESSION = "session-token-that-was-handed-out"


class Tokens(Handler):
    """A token service: it notes what it is asked with, and gives the answer of its site."""

    def do_POST(self) -> None:  # noqa: N802 the base calls it so
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        self.site.asked.append(Asked(f"{self.path}{'&' if '?' in self.path else '?'}{body}", {}))
        self.answer(*self.site.answers["token"])

    def serve(self, path: str) -> None:
        del path
        self.answer(*self.site.answers["token"])


@pytest.fixture
def identity(tmp_path: Path) -> Path:
    path = tmp_path / "identity"
    path.write_text(IDENTITY)
    return path


def amazon_s() -> Site:
    inner = f"<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{ACCESS}</SecretAccessKey>"
    inner += f"<SessionToken>{SESSION}</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>"
    name = "AssumeRoleWithWebIdentity"
    text = f"<{name}Response><{name}Result><Credentials>{inner}</Credentials></{name}Result></{name}Response>"
    return Site(answers={"token": (200, {"Content-Type": "text/xml"}, text.encode())})


@pytest.fixture
def amazon(tmp_path: Path, store: Store, identity: Path, monkeypatch: pytest.MonkeyPatch) -> Amazon:
    """Serve a token service over TLS, and yield what Amazon's webhook puts into a pod; the library wants no less."""
    material, _ = renew(None, CertificatePolicy(("localhost",)), datetime.now(UTC))
    (tmp_path / "tls.pem").write_bytes(material.tls_key + material.tls_crt)
    (tmp_path / "ca.pem").write_bytes(material.ca_crt)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls.pem")

    @contextmanager
    def served(site: Site) -> Iterator[dict[str, str]]:
        with serving(site, Tokens, tls=context):
            env = {
                "AWS_ROLE_ARN": "arn:aws:iam::1:role/reader",
                "AWS_WEB_IDENTITY_TOKEN_FILE": str(identity),
                "AWS_ENDPOINT_URL_STS": site.url,
                "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
                "ENDPOINT": store.endpoint,
                "REGION": "us-east-1",
            }
            for name, value in env.items():
                monkeypatch.setenv(name, value)
            yield env

    return served


def test_amazon_s_workload_identity_signs_with_what_it_was_given(step: Step, amazon: Amazon) -> None:
    tokens = amazon_s()
    with amazon(tokens) as env, serving(Site({"set/a": b"one"}), StoreHandler) as site:
        outcome = step.run("s3://bucket/set", **{**env, "ENDPOINT": site.url})
    assert outcome.code == 0, outcome
    assert step.content() == {"a": b"one"}
    asked = parse_qs(tokens.asked[0].path.partition("?")[2])
    assert (asked["Action"], asked["WebIdentityToken"]) == (["AssumeRoleWithWebIdentity"], [IDENTITY])
    signed = [asked.headers for asked in site.asked if "authorization" in asked.headers]
    assert signed
    assert {headers["x-amz-security-token"] for headers in signed} == {SESSION}
    assert all(f"Credential={KEY}/" in headers["authorization"] for headers in signed)
    # The others are signed in their query.
    assert all(KEY in asked.path for asked in site.asked if "authorization" not in asked.headers)
    quiet(outcome.out, outcome.err, outcome.message)


def test_a_real_store_refuses_what_it_did_not_hand_out(step: Step, amazon: Amazon) -> None:
    with amazon(amazon_s()) as env:
        outcome = step.run("s3://bucket/identity", **env)
    assert (outcome.cause, outcome.code) == ("Denied", 1), outcome
    quiet(outcome.out, outcome.err, outcome.message)


def test_azure_s_workload_identity_sends_its_token(step: Step, identity: Path) -> None:
    token = json.dumps({"access_token": ACCESS, "expires_in": 3600, "token_type": "Bearer"}).encode()
    tokens = Site(answers={"token": (200, {"Content-Type": "application/json"}, token)})
    with serving(tokens, Tokens), serving(Site({"set/a": b"one"}), StoreHandler) as site:
        env = {
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_CLIENT_ID": "client",
            "AZURE_TENANT_ID": "tenant",
            "AZURE_FEDERATED_TOKEN_FILE": str(identity),
            "AZURE_AUTHORITY_HOST": tokens.url,
            "ENDPOINT": f"{site.url}/account",
        }
        outcome = step.run("az://bucket/set", **env)
    assert outcome.code == 0, outcome
    assert step.content() == {"a": b"one"}
    path, _, query = tokens.asked[0].path.partition("?")
    assert path == "/tenant/oauth2/v2.0/token"
    assert parse_qs(query)["client_assertion"] == [IDENTITY]
    assert {asked.headers.get("authorization") for asked in site.asked} == {f"Bearer {ACCESS}"}
    quiet(outcome.out, outcome.err, outcome.message)


def test_who_has_nothing_says_so(step: Step, store: Store) -> None:
    obstore.put(store.bucket, "private/x", b"one")
    outcome = step.run("s3://bucket/private", ENDPOINT=store.endpoint, ANONYMOUS="true")
    assert (outcome.cause, outcome.code) == ("Denied", 1), outcome
    with serving(Site({"set/a": b"one"}), StoreHandler) as site:
        outcome = step.run("s3://bucket/set", ENDPOINT=site.url, ANONYMOUS="true")
    assert outcome.code == 0, outcome
    assert all("authorization" not in asked.headers for asked in site.asked)


def quiet(*words: str) -> None:
    """Check that no secret of these tests is in what was said."""
    for secret in (SECRET, IDENTITY, ACCESS, SESSION):
        assert secret not in "".join(words)
