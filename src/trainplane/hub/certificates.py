"""The serving certificate of the hub server and of its fronts: one for both, so that fronts can tell the owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.hub.apiserver.delegated_auth import GROUP, VERSION
from trainplane.kube.cabundle import API_SERVICES, BundleTarget
from trainplane.kube.certificates import FileCertificates, ManagedCertificates, ManagedSettings
from trainplane.kube.pki import CertificatePolicy

if TYPE_CHECKING:
    from pathlib import Path

    from trainplane.kube.certificates import ServingContext
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock


def owner_service(service: str) -> str:
    """Return the Service of the owner of the volume, behind the fronts' own."""
    return f"{service}-archive"


def certificates(
    client: Client, tls: ServingContext, clock: Clock, *, namespace: str, service: str, folder: Path | None
) -> ManagedCertificates | FileCertificates:
    """Return who looks after the certificate: ourselves, or an admin who puts tls.crt and tls.key into a folder."""
    if folder is not None:
        return FileCertificates(folder / "tls.crt", folder / "tls.key", tls, clock)
    names = tuple(f"{name}.{namespace}.svc" for name in (service, owner_service(service)))
    policy = CertificatePolicy(names, ca_name="trainplane-hub-ca")
    managed = ManagedSettings(namespace, f"{service}-cert", policy)
    return ManagedCertificates(client, managed, tls, clock, targets=(BundleTarget(API_SERVICES, f"{VERSION}.{GROUP}"),))
