"""Serving certificates that look after themselves.

Either `ManagedCertificates`: a CA and a certificate of our own, kept in a Secret that all replicas share, renewed in
time (`pki.py` says when and how), with the CA written into every caBundle that needs it (`cabundle.py` says where).
Or `FileCertificates`: files that an admin provides, followed as they change.

Both load a `ServingContext`, from which servers take their TLS; a new certificate counts from the next connection.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trainplane.kube.cabundle import BundleTarget, bundle_patch
from trainplane.kube.errors import AlreadyExistsError, ConflictError, InvalidError, KubeError, NotFoundError
from trainplane.kube.pki import CertificatePolicy, Material, not_after, renew
from trainplane.kube.projection import METADATA
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import SECRETS, Resource
from trainplane.kube.store import Store
from trainplane.kube.tls import as_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from trainplane.kube.clock import Clock
    from trainplane.kube.reflector import Cluster

log = logging.getLogger(__name__)

JSON_PATCH = "application/json-patch+json"
_NOTHING = Material(b"", b"", b"", b"")
ATTEMPTS = 5
"""Tries against other writers in one round; each loss means that somebody else has just succeeded."""

Tree = dict[str, Any]


class CertificateError(KubeError):
    """A certificate or key that cannot be served. Given by an admin it is theirs to mend."""

    whose = "user"


class CertificateClient(Protocol):
    """What looking after certificates needs of `Client`."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Any:
        """Read one object."""

    async def create(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        """Create an object."""

    async def replace(self, resource: Resource, obj: Tree, namespace: str | None = None) -> Any:
        """PUT an object; a resourceVersion that is no longer current raises ConflictError."""

    async def patch(
        self, resource: Resource, name: str, patch: Any, namespace: str | None = None, *, content_type: str = ...
    ) -> Any:
        """Patch an object."""


class ServingContext:
    """The TLS side of our servers: `context` is one object for the life of the process, `load` changes what it shows.

    TLS 1.2 and up, HTTP/1.1 only, no client certificates unless `verify_clients` asks for them. Each certificate gets
    a context of its own, to which a handshake is handed over at its beginning: a context holds one certificate per
    type of key and would go on showing the old EC certificate beside a new RSA one.

    Args:
        minimum_version: the oldest TLS that is spoken.
        ciphers: OpenSSL's names of the TLS 1.2 suites to offer; its own choice without any.
    """

    def __init__(
        self, *, minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2, ciphers: Sequence[str] = ()
    ) -> None:
        self._minimum_version = minimum_version
        self._ciphers = ":".join(ciphers)
        self._client_authority = ""
        self.context = self._bare()
        self.context.sni_callback = self._hand_over
        self.not_after: datetime | None = None
        self._shown: ssl.SSLContext | None = None

    @property
    def loaded(self) -> bool:
        """Whether there is a certificate to show; a readiness check."""
        return self.not_after is not None

    def load(self, certificate: bytes, key: bytes) -> None:
        """Show this certificate from the next handshake on; raises CertificateError and changes nothing if unusable."""
        shown = self._bare()
        try:
            with as_file(certificate + b"\n" + key) as path:
                shown.load_cert_chain(path)
            ends = not_after(certificate)
        except (ValueError, OSError) as error:
            raise CertificateError(f"this certificate and key cannot be served: {error}") from error
        self._shown, self.not_after = shown, ends

    def verify_clients(self, authority: str) -> None:
        """Ask clients for a certificate of this authority (PEM); one without any is served all the same."""
        self._client_authority = authority
        for context in (self.context, self._shown):
            if context is not None:
                self._trust(context)

    def _trust(self, context: ssl.SSLContext) -> None:
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self._client_authority)

    def _hand_over(self, handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:  # noqa: ARG002 ssl's signature; called without a name, too
        if self._shown is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        handshake.context = self._shown
        return None

    def _bare(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum_version
        context.options |= ssl.OP_NO_RENEGOTIATION  # a handshake for each record would be a cheap way to keep us busy
        context.set_alpn_protocols(["http/1.1"])
        if self._ciphers:
            context.set_ciphers(self._ciphers)
        if self._client_authority:
            self._trust(context)
        return context


@dataclass(frozen=True, slots=True)
class ManagedSettings:
    """Where the shared Secret is and how often everything is looked at.

    Attributes:
        namespace: of the Secret.
        secret: its name. An empty Secret of that name may exist already, as may one that another tool filled.
        policy: for which names and how long certificates are made.
        interval: seconds between rounds; 60 bounds how long a caBundle that somebody reset stays so without a `wake`.
        retry: seconds until the next round after one that failed.
    """

    namespace: str
    secret: str
    policy: CertificatePolicy
    interval: float = 60.0
    retry: float = 5.0


class ManagedCertificates:
    """Keeps Secret, caBundles and serving context right. Every replica runs one; they agree through the Secret."""

    def __init__(
        self,
        client: CertificateClient,
        settings: ManagedSettings,
        serving: ServingContext,
        clock: Clock,
        *,
        targets: Sequence[BundleTarget] = (),
    ) -> None:
        self._client = client
        self._settings = settings
        self._serving = serving
        self._clock = clock
        self._targets = tuple(targets)
        self._woken = asyncio.Event()
        self._served: Material | None = None

    @property
    def bundle(self) -> bytes:
        """The authorities to trust, PEM, for what else needs them; empty before the first round."""
        return b"" if self._served is None else self._served.ca_crt

    def wake(self) -> None:
        """Begin a round now: somebody saw a caBundle or the Secret change."""
        self._woken.set()

    async def run(self) -> None:
        """Hold rounds until cancelled. A round that fails is logged and soon repeated; what is served stays."""
        while True:
            self._woken.clear()
            pause = self._settings.interval
            try:
                await self.sync()
            except (KubeError, OSError) as error:
                pause = self._settings.retry
                log.warning("certificate round failed", extra={"secret": self._settings.secret, "error": repr(error)})
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(pause):
                    await self._woken.wait()

    def reflectors(self, client: Cluster) -> list[Reflector]:
        """Return what watches the Secret and begins a round at each change, so that replicas agree within moments."""
        settings = self._settings
        wake = [lambda _: self.wake()]
        fields = {"metadata.name": settings.secret}
        store = Store(SECRETS, METADATA)
        return [Reflector(client, SECRETS, store, wake, self._clock, namespace=settings.namespace, fields=fields)]

    async def sync(self) -> None:
        """Hold one round: the Secret first, then the caBundles, and only then what we show.

        An object that cannot be patched does not keep the others from being so, nor us from serving; its error is
        raised at the end.
        """
        material = await self._agree()
        failures: list[KubeError] = []
        for target in self._targets:
            try:
                await self._inject(target, material.ca_crt)
            except KubeError as error:
                log.warning("caBundle not written", extra={"target": str(target), "error": repr(error)})
                failures.append(error)
        if material != self._served:
            self._serving.load(material.tls_crt, material.tls_key)
            self._served = material
        if failures:
            raise failures[0]

    async def _agree(self) -> Material:
        """Return what the Secret holds, after having made it right if it was not, or after another replica has.

        A Secret that was deleted or emptied gets back what is served, which the other replicas serve, too: with a new
        authority, those who have not looked yet would show certificates that no caBundle trusts any more. To have a new
        one, delete the Secret while no replica runs.
        """
        namespace, name = self._settings.namespace, self._settings.secret
        for _ in range(ATTEMPTS):
            secret: Tree | None
            try:
                secret = await self._client.get(SECRETS, name, namespace)
            except NotFoundError:
                secret = None
            found = _material(secret)
            material, reasons = renew(found or self._served, self._settings.policy, self._clock.now())
            if not reasons and found is not None:
                return material
            try:
                if secret is None:
                    await self._client.create(SECRETS, _secret(name, namespace, material), namespace)
                else:
                    await self._client.replace(SECRETS, _filled(secret, material), namespace)
            except (ConflictError, AlreadyExistsError):
                continue
            log.info("certificates written", extra={"secret": name, "reasons": reasons or ["the Secret was empty"]})
            return material
        raise ConflictError(f"Secret {namespace}/{name} kept changing while certificates were written to it")

    async def _inject(self, target: BundleTarget, bundle: bytes) -> None:
        for attempt in range(ATTEMPTS):
            obj = await self._client.get(target.resource, target.name)
            patch = bundle_patch(target.resource, obj, bundle)
            if not patch:
                return
            try:
                await self._client.patch(target.resource, target.name, patch, content_type=JSON_PATCH)
            except (ConflictError, InvalidError):  # a failed test of the resourceVersion is 422
                if attempt + 1 == ATTEMPTS:
                    raise
                continue
            log.info("caBundle written", extra={"target": str(target)})
            return


@dataclass(slots=True)
class FileCertificates:
    """Serves a certificate and key from files, and follows them by content, as kubelets swap whole directories.

    Attributes:
        certificate: path of the certificate chain, PEM.
        key: path of its key, PEM.
        serving: what to load.
        clock: paces the looking.
        interval: seconds between looks; 10, as a renewed file is read long before the old certificate ends.
    """

    certificate: Path
    key: Path
    serving: ServingContext
    clock: Clock
    interval: float = 10.0
    _seen: tuple[bytes, bytes] | None = None

    def reflectors(self, client: Cluster) -> list[Reflector]:
        """Return what watches the cluster for it: nothing, files are looked at."""
        del client
        return []

    def load(self) -> bool:
        """Load the files if they changed; tell whether. Raises CertificateError naming what is wrong with them."""
        try:
            content = self.certificate.read_bytes(), self.key.read_bytes()
        except OSError as error:
            raise CertificateError(f"cannot read {error.filename}: {error.strerror}") from error
        if content == self._seen:
            return False
        try:
            self.serving.load(*content)
        except CertificateError as error:
            raise CertificateError(f"{self.certificate} and {self.key}: {error}") from error
        self._seen = content
        return True

    async def run(self) -> None:
        """Follow the files until cancelled. While they are unusable, what was loaded stays."""
        while True:
            try:
                if self.load():
                    log.info("certificate files loaded", extra={"certificate": str(self.certificate)})
            except CertificateError as error:
                log.warning("certificate files not usable", extra={"error": str(error)})
            await self.clock.sleep(self.interval)


def _material(secret: Tree | None) -> Material | None:
    """Return what a Secret holds, None for nothing; a part that is missing or no base64 is empty: `renew` mends it."""
    if secret is None:
        return None
    data = secret.get("data") or {}

    def part(key: str) -> bytes:
        with contextlib.suppress(ValueError):
            return base64.b64decode(data.get(key) or "")
        return b""

    material = Material(part("ca.crt"), part("ca.key"), part("tls.crt"), part("tls.key"))
    return None if material == _NOTHING else material


def _secret(name: str, namespace: str, material: Material) -> Tree:
    metadata = {"name": name, "namespace": namespace}
    return _filled({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}, material)


def _filled(secret: Tree, material: Material) -> Tree:
    parts = {
        "ca.crt": material.ca_crt,
        "ca.key": material.ca_key,
        "tls.crt": material.tls_crt,
        "tls.key": material.tls_key,
    }
    encoded = {key: base64.b64encode(value).decode() for key, value in parts.items()}
    return {**secret, "data": {**(secret.get("data") or {}), **encoded}}
