"""Renewal as a function of material and time."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import PolicyBuilder, Store

from trainplane.kube.pki import CertificatePolicy, Material, not_after, renew

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "webhook.system.svc"
POLICY = CertificatePolicy((NAME, "webhook.system.svc.cluster.local"), ca_name="our-ca", organization="us")
FRESH, FRESH_REASONS = renew(None, POLICY, NOW)
DAY = timedelta(days=1)


def verify(material: Material, at: datetime, trusted: bytes | None = None) -> None:
    """Verify the serving certificate as a TLS client that trusts the bundle would; raises if it would not."""
    store = Store(x509.load_pem_x509_certificates(trusted or material.ca_crt))
    verifier = PolicyBuilder().store(store).time(at).build_server_verifier(x509.DNSName(NAME))
    verifier.verify(x509.load_pem_x509_certificate(material.tls_crt), [])


def authorities(material: Material) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(material.ca_crt)


def test_nothing_becomes_an_authority_and_a_certificate_that_clients_accept() -> None:
    assert [reason.partition(":")[0] for reason in FRESH_REASONS] == ["new authority", "new serving certificate"]
    verify(FRESH, NOW)
    serving = x509.load_pem_x509_certificate(FRESH.tls_crt)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(names.get_values_for_type(x509.DNSName)) == POLICY.dns_names
    usage = serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    [authority] = authorities(FRESH)
    assert authority.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "our-ca"
    assert authority.not_valid_after_utc == NOW + 3650 * DAY
    assert not_after(FRESH.tls_crt) == NOW + 365 * DAY


def test_keys_do_not_show_in_a_repr() -> None:
    assert "PRIVATE" not in repr(FRESH)


@pytest.mark.parametrize("days", [0, 1, 100, 274])
def test_good_material_stays_as_it_is(days: int) -> None:
    assert renew(FRESH, POLICY, NOW + days * DAY) == (FRESH, [])


def test_the_serving_certificate_is_renewed_ahead_of_its_end_by_the_same_authority() -> None:
    later = NOW + 276 * DAY
    renewed, reasons = renew(FRESH, POLICY, later)
    assert reasons == ["new serving certificate: the old one ends 2027-01-01"]
    assert (renewed.ca_crt, renewed.ca_key) == (FRESH.ca_crt, FRESH.ca_key)
    verify(renewed, later)
    assert not_after(renewed.tls_crt) == later + 365 * DAY


def test_an_authority_is_replaced_in_two_steps_that_never_break_trust() -> None:
    begin = NOW + (3650 - 89) * DAY
    old, _ = renew(FRESH, POLICY, begin - 10 * DAY)  # a serving certificate of these days
    published, reasons = renew(old, POLICY, begin)
    assert reasons == ["new authority: the old one ends 2035-12-30"]
    assert published.tls_crt == old.tls_crt
    assert authorities(published)[1:] == authorities(old)
    verify(published, begin, trusted=old.ca_crt)
    verify(published, begin)

    assert renew(published, POLICY, begin + timedelta(minutes=9)) == (published, [])

    settled = begin + timedelta(minutes=10)
    switched, reasons = renew(published, POLICY, settled)
    assert reasons[0].startswith("new serving certificate: ")
    assert switched.ca_crt == published.ca_crt
    verify(switched, settled, trusted=published.ca_crt)
    with pytest.raises(x509.verification.VerificationError):
        verify(switched, settled, trusted=old.ca_crt)

    end = NOW + 3651 * DAY
    pruned, reasons = renew(switched, POLICY, end)
    assert reasons == ["an expired authority leaves the bundle"]
    assert authorities(pruned) == authorities(switched)[:1]
    verify(pruned, end)


def test_a_serving_certificate_that_cannot_wait_is_issued_with_the_new_authority() -> None:
    begin = NOW + 3650 * DAY - timedelta(minutes=15)
    renewed, reasons = renew(FRESH, POLICY, begin)
    assert len(reasons) == 2
    verify(renewed, begin)


def test_long_forgotten_material_is_made_anew_whole() -> None:
    later = NOW + 4000 * DAY
    renewed, reasons = renew(FRESH, POLICY, later)
    assert len(reasons) == 2
    assert len(authorities(renewed)) == 1
    verify(renewed, later)


def test_a_clock_that_went_far_back_does_not_leave_us_without() -> None:
    earlier = NOW - 30 * DAY
    renewed, reasons = renew(FRESH, POLICY, earlier)
    assert reasons
    verify(renewed, earlier)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"tls_crt": b""}, "tls.crt or tls.key is missing"),
        ({"tls_key": b"nonsense"}, "tls.crt or tls.key is missing"),
        ({"tls_key": FRESH.ca_key}, "tls.key does not belong"),
        ({"tls_crt": FRESH.ca_crt, "tls_key": FRESH.ca_key}, "tls.crt or tls.key is missing"),  # carries no names
        ({"ca_crt": b""}, "ca.crt or ca.key is missing"),
        ({"ca_crt": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "ca.crt or ca.key is missing"),
        ({"ca_key": b""}, "ca.crt or ca.key is missing"),
        ({"ca_key": FRESH.tls_key}, "ca.key does not belong"),
        ({"ca_crt": FRESH.tls_crt, "ca_key": FRESH.tls_key}, "no certificate authority"),
    ],
)
def test_damage_is_mended_and_named(damage: dict[str, bytes], reason: str) -> None:
    renewed, reasons = renew(dataclasses.replace(FRESH, **damage), POLICY, NOW)
    assert any(reason in each for each in reasons)
    verify(renewed, NOW)
    assert renew(renewed, POLICY, NOW) == (renewed, [])


def test_a_lost_ca_key_is_no_reason_to_break_trust() -> None:
    renewed, _ = renew(dataclasses.replace(FRESH, ca_key=b""), POLICY, NOW)
    assert renewed.tls_crt == FRESH.tls_crt
    verify(renewed, NOW, trusted=FRESH.ca_crt)


def test_a_name_that_is_missing_brings_a_new_certificate() -> None:
    policy = dataclasses.replace(POLICY, dns_names=(*POLICY.dns_names, "another.svc"))
    renewed, reasons = renew(FRESH, policy, NOW)
    assert reasons == ["new serving certificate: the old one lacks another.svc"]
    assert renewed.ca_crt == FRESH.ca_crt


def test_a_certificate_of_another_authority_is_replaced() -> None:
    other, _ = renew(None, POLICY, NOW)
    mixed = dataclasses.replace(FRESH, tls_crt=other.tls_crt, tls_key=other.tls_key)
    renewed, reasons = renew(mixed, POLICY, NOW)
    assert reasons == ["new serving certificate: no authority of ca.crt signed the old one"]
    verify(renewed, NOW)


def foreign_authority(key: Any, algorithm: hashes.SHA256 | None) -> tuple[bytes, bytes]:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "another tool's")])
    certificate = (
        x509.CertificateBuilder()
        .issuer_name(name)
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - 30 * DAY)
        .not_valid_after(NOW + 3000 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, algorithm)
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(encoding, form, serialization.NoEncryption())
    return certificate.public_bytes(encoding), pem


def test_an_rsa_authority_of_another_tool_is_adopted_and_signs() -> None:
    ca_crt, ca_key = foreign_authority(rsa.generate_private_key(65537, 2048), hashes.SHA256())
    renewed, reasons = renew(Material(ca_crt, ca_key, b"", b""), POLICY, NOW)
    assert len(reasons) == 1
    assert (renewed.ca_crt, renewed.ca_key) == (ca_crt, ca_key)
    serving = x509.load_pem_x509_certificate(renewed.tls_crt)
    serving.verify_directly_issued_by(x509.load_pem_x509_certificate(ca_crt))


def test_an_authority_whose_key_we_cannot_sign_with_is_superseded() -> None:
    ca_crt, ca_key = foreign_authority(ed25519.Ed25519PrivateKey.generate(), None)
    renewed, _ = renew(Material(ca_crt, ca_key, b"", b""), POLICY, NOW)
    assert len(authorities(renewed)) == 2
    verify(renewed, NOW, trusted=renewed.ca_crt[: renewed.ca_crt.index(b"-----END") + 26])


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"dns_names": ()}, "dns_names"), ({"serving_life": 90 * DAY}, "serving_life"), ({"ca_life": DAY}, "ca_life")],
)
def test_policies_that_cannot_work_are_refused_by_name(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        CertificatePolicy(**{"dns_names": ("a",), **fields})


def test_a_long_service_name_fits_the_common_name() -> None:
    long = "s" * 60 + ".namespace-of-some-length.svc"
    material, _ = renew(None, CertificatePolicy((long,)), NOW)
    serving = x509.load_pem_x509_certificate(material.tls_crt)
    assert serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
        x509.DNSName
    ) == [long]
