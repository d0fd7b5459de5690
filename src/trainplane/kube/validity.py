"""When a credential ends: certificates and tokens, read without a library of cryptography: the SDK brings none.

Only the dates are read; nothing is verified here. Whatever the text is, an answer or None comes back: a certificate
that cannot be read is refused by whoever uses it, with better words.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_MOST_CERTIFICATES: Final = 64
"""Of a bundle: one of a cluster has a handful."""
_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_FORMS: Final = {_UTC_TIME: "%y%m%d%H%M%SZ", _GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}


def certificate_ends(pem: str) -> list[datetime]:
    """Return when each certificate of a PEM text ends, in its order; those that cannot be read are left out."""
    ends = []
    for found in list(_PEM.finditer(pem))[:_MOST_CERTIFICATES]:
        try:
            ends.append(_not_after(base64.b64decode("".join(found[1].split()), validate=True)))
        except (binascii.Error, ValueError, IndexError):
            continue
    return ends


def certificate_end(pem: str | None) -> datetime | None:
    """Return when the first certificate of a PEM text ends, None if there is none."""
    return next(iter(certificate_ends(pem or "")), None)


def token_end(token: str) -> datetime | None:
    """Return when a ServiceAccount's token ends, None if it is another kind of token or does not say."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=dict[str, Any])
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _not_after(der: bytes) -> datetime:
    """Return the end of a certificate: X.509's `tbsCertificate.validity.notAfter`."""
    to_be_signed = _content(_content(der, _SEQUENCE), _SEQUENCE)
    tag, _, rest = _element(to_be_signed)
    if tag == _VERSION:
        _, _, rest = _element(rest)  # the serial number
    _, _, rest = _element(rest)  # the signature's algorithm
    _, _, rest = _element(rest)  # the issuer
    validity = _content(rest, _SEQUENCE)
    _, _, rest = _element(validity)
    tag, text, _ = _element(rest)
    if tag not in _FORMS:
        raise ValueError("no time")
    end = datetime.strptime(text.decode("ascii"), _FORMS[tag]).replace(tzinfo=UTC)
    # Years of two digits are 1950 to 2049 to X.509, 1969 to 2068 to Python.
    return end.replace(year=end.year - 100) if tag == _UTC_TIME and end.year >= 2050 else end


def _content(data: bytes, wanted: int) -> bytes:
    tag, content, _ = _element(data)
    if tag != wanted:
        raise ValueError("no certificate")
    return content


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first element in DER, and what follows it."""
    tag, size, start = data[0], data[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(data[2:start], "big")
    if start + size > len(data):
        raise ValueError("cut short")
    return tag, data[start : start + size], data[start + size :]
