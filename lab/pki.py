"""Certificates of a cluster: one authority, and a certificate per role.

EC keys: a 2048-bit RSA key costs more time than the rest of a warm start together.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_LIFETIME = dt.timedelta(days=90)
"""Longer than any lab cluster lives."""


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose key stays in the cluster's folder."""

    def __init__(self, folder: Path, key: ec.EllipticCurvePrivateKey, subject: x509.Name) -> None:
        self._folder = folder
        self._key = key
        self._subject = subject

    @classmethod
    def create(cls, folder: Path, name: str) -> Authority:
        """Make an authority and write its certificate and key as `ca.crt` and `ca.key`."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"trainplane-lab-{name}")])
        builder = _builder(subject, subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(sign=True), critical=True)
        builder = _identified(builder, key.public_key(), key.public_key())
        _write(folder, "ca", builder.sign(key, hashes.SHA256()), key)
        return cls(folder, key, subject)

    @classmethod
    def load(cls, folder: Path) -> Authority:
        """Return the authority that `create` made in a folder."""
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            message = f"{folder}/ca.key is no key of ours"
            raise LabError(message)
        return cls(folder, key, x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()).subject)

    def issue(self, name: str, common_name: str, *, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> Pair:
        """Issue a certificate for a user (groups) or a server (hosts: names and addresses), or both."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = _builder(subject, self._subject, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(sign=False), critical=True)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = _identified(builder, key.public_key(), self._key.public_key())
        if names := [_general_name(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return _write(self._folder, name, builder.sign(self._key, hashes.SHA256()), key)


def signing_pair(folder: Path, name: str) -> Pair:
    """Make a bare key pair (public half as `certificate`): the one that signs service-account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = folder / f"{name}.pub"
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return Pair(public, _write_key(folder / f"{name}.key", key))


def _builder(subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
    )


def _identified(
    builder: x509.CertificateBuilder, own: ec.EllipticCurvePublicKey, issuer: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Add the key identifiers: Python 3.13 and later refuse a certificate without them."""
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(own), critical=False)
    return builder.add_extension(authority, critical=False)


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=not sign,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    path = folder / f"{name}.crt"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Pair(path, _write_key(folder / f"{name}.key", key))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
