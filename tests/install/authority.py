"""A webhook authority that is older than it is: what an admin would have to wait for is there at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

if TYPE_CHECKING:
    from datetime import timedelta


def aged(ca_crt: bytes, ca_key: bytes, by: timedelta) -> bytes:
    """Return a bundle whose first authority began earlier; its key is the same, so who trusts it goes on to."""
    first, *others = x509.load_pem_x509_certificates(ca_crt)
    key = load_pem_private_key(ca_key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    builder = x509.CertificateBuilder(
        first.issuer,
        first.subject,
        first.public_key(),
        x509.random_serial_number(),
        first.not_valid_before_utc - by,
        first.not_valid_after_utc,
    )
    for extension in first.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return b"".join(one.public_bytes(Encoding.PEM) for one in (builder.sign(key, SHA256()), *others))
