from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainplane.kube.pki import CertificatePolicy, not_after, renew
from trainplane.kube.validity import certificate_end, certificate_ends, token_end

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def material(days: int) -> tuple[str, str]:
    """Return an authority and a serving certificate that end after so many days and a year."""
    policy = CertificatePolicy(("a.b.svc",), ca_life=timedelta(days=days), serving_life=timedelta(days=365))
    made, _ = renew(None, policy, NOW)
    return made.ca_crt.decode(), made.tls_crt.decode()


@pytest.mark.parametrize("days", [400, 365 * 20, 365 * 60], ids=["years of two digits", "still", "of four"])
def test_the_end_is_the_one_that_a_library_of_cryptography_reads(days: int) -> None:
    for certificate in material(days):
        assert certificate_end(certificate) == not_after(certificate.encode())


def test_each_certificate_of_a_bundle_is_read_past_text_between_them() -> None:
    authority, serving = material(400)
    bundle = f"# ours\n{authority}\nnot a certificate\n{serving}"
    assert certificate_ends(bundle) == [not_after(authority.encode()), not_after(serving.encode())]


def test_a_certificate_that_cannot_be_read_does_not_hide_the_next() -> None:
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    authority, _ = material(400)
    assert certificate_end(broken + authority) == not_after(authority.encode())
    assert certificate_end(broken) is None
    assert certificate_end(None) is None


def test_a_year_of_two_digits_before_the_pivot_is_of_the_last_century() -> None:
    authority, _ = material(400)
    der = base64.b64decode("".join(authority.splitlines()[1:-1]))
    end = f"{not_after(authority.encode()):%y%m%d%H%M%SZ}".encode()
    aged = base64.encodebytes(der.replace(end, b"60" + end[2:])).decode()
    read = certificate_end(f"-----BEGIN CERTIFICATE-----\n{aged}-----END CERTIFICATE-----\n")
    assert read is not None
    assert read.year == 1960


@given(st.binary(max_size=200))
def test_no_bytes_raise(content: bytes) -> None:
    body = base64.encodebytes(content).decode() or "\n"
    assert len(certificate_ends(f"-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n")) <= 1


@given(st.text(max_size=200))
def test_no_text_raises(content: str) -> None:
    assert certificate_end(content) is None
    token_end(content)


def test_a_token_says_when_it_ends() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": NOW.timestamp()}).encode()).decode().rstrip("=")
    assert token_end(f"h.{claims}.s") == NOW
    assert token_end("opaque") is None
