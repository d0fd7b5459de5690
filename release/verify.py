"""Whether a folder of released files is what a key signed. Asks no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from release import checksums, provenance, signing
from release.errors import UntrustedError

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURE: Final = f"{checksums.NAME}.sig"
PUBLIC_KEY: Final = "cosign.pub"
"""Beside the files for convenience. Who verifies with a key that came with the files knows only that they are whole."""
BESIDE: Final = (checksums.NAME, SIGNATURE, PUBLIC_KEY, provenance.NAME)


def verify(folder: Path, public_pem: bytes) -> dict[str, str]:
    """Return the files with their digests, if the key signed them all and nothing else is there.

    Raises:
        UntrustedError: it says all that does not fit.
    """
    key = signing.public_key(public_pem)
    content = _read(folder, checksums.NAME)
    if not signing.is_signed(content, _read(folder, SIGNATURE).decode("latin-1"), key):
        raise UntrustedError(f"{checksums.NAME}: is not signed by key {signing.key_id(key)[:16]}…")
    sums = checksums.parse(content.decode("latin-1"))
    problems = list(checksums.problems(folder, sums, BESIDE))
    if provenance.subjects(signing.unseal(_read(folder, provenance.NAME), key)) != sums:
        problems.append(f"{provenance.NAME}: speaks of other files than {checksums.NAME}")
    if problems:
        raise UntrustedError(*problems)
    return sums


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise UntrustedError(f"{name}: cannot be read: {error.strerror}") from error
