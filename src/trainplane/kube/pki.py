"""Certificates as values: issue them, judge them, renew them. No I/O; the time is an argument.

A `Material` holds a certificate authority and one serving certificate. The authority is renewed in two steps, so that
nobody who trusts the old one alone ever meets a certificate of the new one:

1. A new authority is made well before the old one ends. Both stand in `ca_crt`, the new one, which signs, first; the
   serving certificate stays that of the old one.
2. Once the new one has been out for `settle`, the serving certificate is issued anew. The old authority leaves
   `ca_crt` when it has expired.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = timedelta(hours=1)
"""How far `notBefore` lies before the issue, for callers whose clocks are behind."""

_FAULTS = (ValueError, TypeError, IndexError, InvalidSignature, x509.ExtensionNotFound)


@dataclass(frozen=True, slots=True)
class Material:
    """A CA and a serving certificate, all PEM. `ca_crt` may hold several authorities; the first belongs to `ca_key`."""

    ca_crt: bytes
    ca_key: bytes = field(repr=False)
    tls_crt: bytes
    tls_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class CertificatePolicy:
    """Whom certificates are for and how long they last.

    Attributes:
        dns_names: names that the serving certificate must carry; the first is its common name. For a webhook
            `SERVICE.NAMESPACE.svc`.
        ca_name: common name of the authority.
        organization: organisation of both.
        ca_life: how long an authority lasts; ten years, since each renewal touches every caBundle.
        serving_life: how long a serving certificate lasts; a year.
        ahead: how long before its end either is renewed; 90 days leaves time to notice that renewing fails.
        settle: how long a new authority is only published before it signs; ten minutes is ages for a caBundle to
            reach every API server and for every replica to have looked at the Secret.
    """

    dns_names: tuple[str, ...]
    ca_name: str = "kube-ca"
    organization: str = "kube"
    ca_life: timedelta = timedelta(days=3650)
    serving_life: timedelta = timedelta(days=365)
    ahead: timedelta = timedelta(days=90)
    settle: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if not self.dns_names:
            raise ValueError("dns_names is empty: say for which names the certificate is to be valid")
        for name, life in (("ca_life", self.ca_life), ("serving_life", self.serving_life)):
            if life <= self.ahead + 2 * self.settle:
                raise ValueError(f"{name} ({life}) must be longer than ahead ({self.ahead}) and twice settle together")


def renew(current: Material | None, policy: CertificatePolicy, now: datetime) -> tuple[Material, list[str]]:
    """Return what should be in use at `now`, and why it differs from `current`: no reasons, no difference."""
    reasons: list[str] = []
    authorities = [] if current is None else _unexpired(current.ca_crt, now)
    ca_crt, ca_key = (b"", b"") if current is None else (current.ca_crt, current.ca_key)
    if fault := _authority_fault(authorities, ca_key, policy, now):
        reasons.append(f"new authority: {fault}")
        issued, ca_key = _issue_authority(policy, now)
        authorities.insert(0, issued)
    bundle = b"".join(authority.public_bytes(serialization.Encoding.PEM) for authority in authorities)
    if reasons or _count(ca_crt) != len(authorities):
        ca_crt = bundle
        reasons = reasons or ["an expired authority leaves the bundle"]
    tls_crt, tls_key = (b"", b"") if current is None else (current.tls_crt, current.tls_key)
    if fault := _serving_fault(tls_crt, tls_key, authorities, policy, now):
        reasons.append(f"new serving certificate: {fault}")
        tls_crt, tls_key = _issue_serving(authorities[0], ca_key, policy, now)
    return Material(ca_crt, ca_key, tls_crt, tls_key), reasons


def not_after(certificate: bytes) -> datetime:
    """Return when the first certificate of a PEM text ends; raises ValueError if it is none."""
    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except x509.InvalidVersion as error:
        raise ValueError(str(error)) from error


def _authority_fault(
    authorities: list[x509.Certificate], ca_key: bytes, policy: CertificatePolicy, now: datetime
) -> str | None:
    """Return why the first authority must not sign any longer."""
    try:
        signing = authorities[0]
        if _signing_key(ca_key).public_key() != signing.public_key():
            return "ca.key does not belong to ca.crt"
        if not signing.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return "ca.crt is no certificate authority"
    except _FAULTS:
        return "ca.crt or ca.key is missing, expired or unreadable"
    if signing.not_valid_before_utc > now:
        return "ca.crt is not valid yet"
    if signing.not_valid_after_utc <= now + policy.ahead:
        return f"the old one ends {signing.not_valid_after_utc:%Y-%m-%d}"
    return None


def _serving_fault(
    tls_crt: bytes, tls_key: bytes, authorities: list[x509.Certificate], policy: CertificatePolicy, now: datetime
) -> str | None:
    """Return why the serving certificate must be issued anew now."""
    try:
        serving = x509.load_pem_x509_certificate(tls_crt)
        if not _belong(serving, tls_key):
            return "tls.key does not belong to tls.crt"
        names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        missing = set(policy.dns_names).difference(names.get_values_for_type(x509.DNSName))
    except _FAULTS:
        return "tls.crt or tls.key is missing or unreadable"
    if missing:
        return f"the old one lacks {', '.join(sorted(missing))}"
    signer = next((authority for authority in authorities if _signed(serving, authority)), None)
    if signer is None:
        return "no authority of ca.crt signed the old one"
    return _serving_due(serving, signer, authorities[0], policy, now)


def _serving_due(
    serving: x509.Certificate,
    signer: x509.Certificate,
    authority: x509.Certificate,
    policy: CertificatePolicy,
    now: datetime,
) -> str | None:
    """Return why a sound serving certificate must go: its time, or the authority that signs today has settled."""
    end = min(serving.not_valid_after_utc, signer.not_valid_after_utc)
    settled = authority.not_valid_before_utc + BACKDATE + policy.settle <= now
    if serving.not_valid_before_utc > now:
        return "the old one is not valid yet"
    if end <= now + (policy.ahead if settled else 2 * policy.settle):
        return f"the old one ends {end:%Y-%m-%d}"
    if settled and signer != authority:
        return "the new authority has settled"
    return None


def _issue_authority(policy: CertificatePolicy, now: datetime) -> tuple[x509.Certificate, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(policy.ca_name, policy)
    usage = _usage(sign_certificates=True)
    certificate = (
        _builder(name, name, key.public_key(), now, policy.ca_life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate, _pem(key)


def _issue_serving(
    authority: x509.Certificate, ca_key: bytes, policy: CertificatePolicy, now: datetime
) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    signer = _signing_key(ca_key)
    life = min(policy.serving_life, authority.not_valid_after_utc - now)
    certificate = (
        _builder(authority.subject, _name(policy.dns_names[0][:64], policy), key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in policy.dns_names]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _pem(key)


def _builder(
    issuer: x509.Name, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common: str, policy: CertificatePolicy) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, policy.organization)
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _signing_key(ca_key: bytes) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    """Return an authority's key; RSA is what other tools put into a Secret that we adopt."""
    key = serialization.load_pem_private_key(ca_key, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise TypeError(f"an authority's key must be EC or RSA, not {type(key).__name__}")
    return key


def _unexpired(ca_crt: bytes, now: datetime) -> list[x509.Certificate]:
    try:
        return [each for each in x509.load_pem_x509_certificates(ca_crt) if each.not_valid_after_utc > now]
    except ValueError:
        return []


def _count(ca_crt: bytes) -> int:
    return ca_crt.count(b"-----BEGIN CERTIFICATE-----")


def _belong(certificate: x509.Certificate, key: bytes) -> bool:
    return serialization.load_pem_private_key(key, None).public_key() == certificate.public_key()


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except _FAULTS:
        return False
    return True
