"""Fake workers behind TLS, since no other kubeconfig of a worker is used, and their kubeconfigs."""

from __future__ import annotations

import base64
import functools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import yaml

from trainplane.kube.certificates import ServingContext
from trainplane.kube.pki import CertificatePolicy, Material, renew

if TYPE_CHECKING:
    import ssl

_NAME = "localhost"


@functools.cache
def _material() -> Material:
    return renew(None, CertificatePolicy((_NAME,)), datetime.now(UTC))[0]


def serving() -> ssl.SSLContext:
    """Return what a fake worker shows: `FakeServer(tls=serving())`."""
    shown = ServingContext()
    shown.load(_material().tls_crt, _material().tls_key)
    return shown.context


def cluster(server: str, **others: Any) -> dict[str, Any]:
    """Return the cluster entry of a fake worker: the certificate is of a name, the server of an address."""
    authority = base64.b64encode(_material().ca_crt).decode()
    return {"server": server, "certificate-authority-data": authority, "tls-server-name": _NAME, **others}


def client_pair() -> tuple[str, str]:
    """Return a certificate and its key in base64, as a kubeconfig has them."""
    return base64.b64encode(_material().tls_crt).decode(), base64.b64encode(_material().tls_key).decode()


def tree(server: str, token: str = "t") -> dict[str, Any]:  # noqa: S107 no secret
    """Return the kubeconfig of a fake worker."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "worker",
        "contexts": [{"name": "worker", "context": {"cluster": "worker", "user": "multikueue"}}],
        "clusters": [{"name": "worker", "cluster": cluster(server)}],
        "users": [{"name": "multikueue", "user": {"token": token}}],
    }


def kubeconfig(server: str, token: str = "t") -> str:  # noqa: S107 no secret
    """Return it as text."""
    return yaml.safe_dump(tree(server, token))
