"""The servers' TLS: whose certificate, and which versions and ciphers of the protocol."""

from __future__ import annotations

import logging
import ssl
from typing import TYPE_CHECKING, Final

from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import BY_PLURAL, MPI
from trainplane.kube.cabundle import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    BundleTarget,
)
from trainplane.kube.certificates import FileCertificates, ManagedCertificates, ManagedSettings, ServingContext
from trainplane.kube.pki import CertificatePolicy

if TYPE_CHECKING:
    from collections.abc import Collection

    from trainplane.api.configuration import TLS
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.operator.settings import Settings

log = logging.getLogger(__name__)

AUTHORITY: Final = "kubeflow-trainer-ca"
ORGANIZATION: Final = "kubeflow-trainer"
TARGETS: Final = (
    BundleTarget(MUTATING_WEBHOOKS, "defaulter.trainer.kubeflow.org"),
    BundleTarget(VALIDATING_WEBHOOKS, "validator.trainer.kubeflow.org"),
)
"""The configurations that must trust our certificate; the names are the reference's."""
OLDER_TARGETS: Final = (
    BundleTarget(MUTATING_WEBHOOKS, legacy_names.DEFAULTER),
    BundleTarget(VALIDATING_WEBHOOKS, legacy_names.VALIDATOR),
    BundleTarget(CUSTOM_RESOURCE_DEFINITIONS, f"{MPI.plural}.{legacy_names.GROUP}"),
)
"""The same for older kinds, where any is served; the last for MPIJobs."""

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def serving_context(tls: TLS) -> ServingContext:
    """Return the context that all servers share, without a certificate yet."""
    version = _VERSIONS["1.2"]
    if tls.min_version:
        if tls.min_version in _VERSIONS:
            version = _VERSIONS[tls.min_version]
        else:
            log.warning("TLS below 1.2 is not served", extra={"field": "tls.minVersion", "value": tls.min_version})
    wanted = [suite for suite in tls.cipher_suites if not _is_tls13(suite)]
    known = [name for name in map(_openssl_name, wanted) if _is_known(name)]
    if len(known) < len(wanted):
        log.warning("not all cipher suites are known", extra={"field": "tls.cipherSuites", "value": wanted})
    if set(tls.next_protos) - {"http/1.1"}:
        log.warning("only http/1.1 is served", extra={"field": "tls.nextProtos", "value": tls.next_protos})
    return ServingContext(minimum_version=version, ciphers=known)


def certificates(
    settings: Settings, client: Client, serving: ServingContext, clock: Clock
) -> ManagedCertificates | FileCertificates:
    """Return who looks after the certificate: ourselves, or an admin who puts files in a folder."""
    management = settings.configuration.cert_management
    if not management.enable:
        folder = settings.certificates
        return FileCertificates(folder / "tls.crt", folder / "tls.key", serving, clock)
    service = f"{management.webhook_service_name}.{settings.namespace}.svc"
    policy = CertificatePolicy((service,), ca_name=AUTHORITY, organization=ORGANIZATION)
    managed = ManagedSettings(settings.namespace, management.webhook_secret_name, policy)
    targets = (*TARGETS, *older_targets(settings.configuration.legacy.kinds))
    return ManagedCertificates(client, managed, serving, clock, targets=targets)


def older_targets(kinds: Collection[str]) -> tuple[BundleTarget, ...]:
    """Return what must trust our certificate for older kinds: their webhooks, and the CRD whose objects we convert."""
    if BY_PLURAL.keys().isdisjoint(kinds):
        return ()
    return OLDER_TARGETS if MPI.plural in kinds else OLDER_TARGETS[:2]


def _is_tls13(suite: str) -> bool:
    return "_WITH_" not in suite


def _is_known(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").removeprefix("RSA_").replace("AES_", "AES")
    if name.endswith("_CHACHA20_POLY1305_SHA256"):
        name = name.removesuffix("_SHA256")
    return name.replace("_CBC", "").replace("_", "-")
