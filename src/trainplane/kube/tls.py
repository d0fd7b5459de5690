"""TLS towards the API server: what to trust and which certificate to show, followed as the files change."""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from trainplane.kube.errors import ConfigError

RECHECK_SECONDS = 60.0
"""Age at which certificate files are looked at again; they are replaced days before the old ones expire."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust and identity of a connection. Each is PEM text or a file; with neither, the system's authorities count."""

    ca: str | Path | None = None
    certificate: str | Path | None = None
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
                raise ConfigError(f"certificate-authority {_name(self.ca)} cannot be used: {error}") from error
        certificate, key = identity or (self.certificate, self.key)
        if certificate is not None and key is not None:
            try:
                _load_chain(context, _text(certificate), _text(key))
            except (OSError, ValueError) as error:
                text = f"client-certificate {_name(certificate)} with client-key {_name(key)} cannot be used: {error}"
                raise ConfigError(text) from error
        return context


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _text(value: str | Path) -> str:
    return value.read_text() if isinstance(value, Path) else value


def _name(value: str | Path) -> str:
    return str(value) if isinstance(value, Path) else "(inline data)"


def _load_chain(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a chain from memory: OpenSSL's binding reads files only, so the pair passes through one of mode 0600."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{certificate.rstrip()}\n{key.rstrip()}\n")
        # A passphrase would be asked for on the terminal, in the middle of the event loop.
        context.load_cert_chain(path, password=_no_passphrase)
    finally:
        Path(path).unlink()


def _no_passphrase() -> str:
    raise ValueError("the key is encrypted; use one without a passphrase or an exec plugin")
