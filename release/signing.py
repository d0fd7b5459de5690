"""Signatures by a key: of a file as cosign writes them (`sign-blob`), and of a statement in a DSSE envelope.

Keys are ECDSA on P-256 in PEM: `cosign verify-blob --key cosign.pub --signature FILE.sig FILE` and `openssl dgst
-sha256 -verify` take them. A public release is signed without a key of ours, by sigstore
(`.github/workflows/release.yaml`); the key here proves, offline, that what was made is whole and that a change is
noticed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from release.errors import ReleaseError, UntrustedError

if TYPE_CHECKING:
    from pathlib import Path

STATEMENT: Final = "application/vnd.in-toto+json"
"""The payload's type of an in-toto statement."""
_MOST_BYTES: Final = 4 << 20
"""Of an envelope: a release has a dozen files."""
_SIGNED_WITH: Final = ec.ECDSA(hashes.SHA256())


def make_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Make a key in a file that only its owner reads; one that is there is never overwritten."""
    key = ec.generate_private_key(ec.SECP256R1())
    kind = serialization.PrivateFormat.PKCS8
    content = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    return key


def private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a key to sign with.

    Raises:
        ReleaseError: it cannot be read or is of another kind. Nothing of it is quoted.
    """
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ReleaseError(f"{path}: is no readable PEM key on P-256: make one with `python -m release key {path}`")
    return key


def public_key(pem: bytes) -> ec.EllipticCurvePublicKey:
    """Read a key to verify with.

    Raises:
        UntrustedError: it is none, or of another kind.
    """
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise UntrustedError("the public key: is no PEM key on P-256")
    return key


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return what others verify with."""
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, kind)


def key_id(key: ec.EllipticCurvePublicKey) -> str:
    """Return the key's name: the SHA-256 of its DER form."""
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, kind)).hexdigest()


def sign(content: bytes, key: ec.EllipticCurvePrivateKey) -> str:
    """Return a signature of bytes, as cosign writes it into a file."""
    return base64.b64encode(key.sign(content, _SIGNED_WITH)).decode()


def is_signed(content: bytes, signature: str, key: ec.EllipticCurvePublicKey) -> bool:
    """Return whether the key signed just these bytes."""
    try:
        key.verify(base64.b64decode(signature.strip(), validate=True), content, _SIGNED_WITH)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return True


def seal(payload: bytes, key: ec.EllipticCurvePrivateKey, kind: str = STATEMENT) -> str:
    """Return a DSSE envelope around a payload, on one line."""
    signature = {"keyid": key_id(key.public_key()), "sig": sign(pre_authentication(kind, payload), key)}
    body = base64.b64encode(payload).decode()
    return json.dumps({"payload": body, "payloadType": kind, "signatures": [signature]}) + "\n"


def unseal(envelope: bytes, key: ec.EllipticCurvePublicKey, kind: str = STATEMENT) -> bytes:
    """Return the payload of an envelope that the key signed: the very bytes that were verified.

    Raises:
        UntrustedError: it is no envelope, of another type, or the key signed something else.
    """
    if len(envelope) > _MOST_BYTES:
        raise UntrustedError(f"the envelope: is larger than {_MOST_BYTES} bytes")
    try:
        tree: Any = json.loads(envelope)
        payload = base64.b64decode(tree["payload"], validate=True)
        said, signatures = tree["payloadType"], [str(one["sig"]) for one in tree["signatures"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UntrustedError("the envelope: is no DSSE envelope") from error
    if said != kind:
        raise UntrustedError(f"the envelope: its payload is no {kind}")
    signed = pre_authentication(kind, payload)
    if not any(is_signed(signed, signature, key) for signature in signatures[:16]):
        raise UntrustedError(f"the envelope: is not signed by key {key_id(key)[:16]}…")
    return payload


def pre_authentication(kind: str, payload: bytes) -> bytes:
    """Return what DSSE signs: the type and the payload, each with its length, so that neither can be read otherwise."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)
