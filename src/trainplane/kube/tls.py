"""TLS towards the API server: what to trust and which certificate to show, followed as the files change."""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from trainplane.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

RECHECK_SECONDS = 60.0
"""Age at which certificate files are looked at again; they are replaced days before the old ones expire."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust and identity of a connection. Each is PEM text or a file; with neither, the system's authorities count."""

    ca: str | Path | None = field(default=None, repr=False)
    certificate: str | Path | None = field(default=None, repr=False)
    key: str | Path | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name the server's certificate must carry, where it is not the host of the URL."""
    insecure: bool = False
    """Verify nothing. Only a kubeconfig's cluster entry can set it, for that cluster alone."""

    def fingerprint(self) -> tuple[object, ...]:
        """Return what changes when one of the files does; files that are missing for a moment count as unchanged."""
        files = (self.ca, self.certificate, self.key)
        return tuple(_stamp(file) for file in files if isinstance(file, Path))

    def context(self, identity: tuple[str, str] | None = None) -> ssl.SSLContext:
        """Build the context, showing `identity` (certificate and key, PEM) if given instead of our own.

        Raises ConfigError naming the file or field that does not hold what it should.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=_text(self.ca))
            except (OSError, ValueError) as error:
                raise ConfigError(f"certificate-authority {_name(self.ca)} cannot be used: {error}") from None
        certificate, key = identity or (self.certificate, self.key)
        if certificate is not None and key is not None:
            try:
                _load_chain(context, _text(certificate), _text(key))
            except (OSError, ValueError) as error:
                text = f"client-certificate {_name(certificate)} with client-key {_name(key)} cannot be used: {error}"
                raise ConfigError(text) from None
        return context


def pem(data: str) -> str:
    """Return the PEM text of a kubeconfig's `-data` field; raises ValueError, which says nothing of what it holds."""
    try:
        text = base64.b64decode("".join(data.split()), validate=True).decode()
    except ValueError:
        text = ""
    if not text:
        raise ValueError("is not base64 of PEM text")
    return text


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Lend content a path, for OpenSSL's binding reads files only.

    On Linux the file is in memory: no key touches a disk, and neither a temporary folder nor a root that can be written
    is needed. Elsewhere, and where there is no /proc, it is a private one that is gone right after; it is closed before
    it is lent, for Windows opens no file twice.
    """
    memory = _memory()
    if memory is not None:
        with memory:
            memory.write(content)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
        return
    with tempfile.NamedTemporaryFile(delete=False) as file:
        path = Path(file.name)
    try:
        path.write_bytes(content)
        yield file.name
    finally:
        path.unlink()


def _memory() -> IO[bytes] | None:
    """Return a file in memory that can be opened by its path, None where the system has no such."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        file = os.fdopen(os.memfd_create("certificate"), "wb")
    except OSError:
        return None
    if Path(f"/proc/self/fd/{file.fileno()}").exists():
        return file
    file.close()
    return None


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _text(value: str | Path) -> str:
    """Return PEM, without the characters that only comments between its blocks can have: OpenSSL takes ASCII."""
    content = value.read_bytes() if isinstance(value, Path) else value.encode(errors="ignore")
    return content.decode("ascii", "ignore")


def _name(value: str | Path) -> str:
    return str(value) if isinstance(value, Path) else "(inline data)"


def _load_chain(context: ssl.SSLContext, certificate: str, key: str) -> None:
    with as_file(f"{certificate.rstrip()}\n{key.rstrip()}\n".encode("ascii")) as path:
        # A passphrase would be asked for on the terminal, in the middle of the event loop.
        context.load_cert_chain(path, password=_no_passphrase)


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted; use one without a passphrase or an exec plugin")
