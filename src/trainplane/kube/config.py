"""Where the cluster is and who we are to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainplane.kube.credentials import Credentials, StaticCredentials
from trainplane.kube.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's token, namespace and authority."""


@dataclass(frozen=True, slots=True)
class Config:
    """All that a Transport needs to reach one cluster."""

    server: str = field(repr=False)
    """URL of the API server, with a path where a gateway serves several clusters."""
    namespace: str = "default"
    """Namespace of calls that name none: the context's, or the pod's own."""
    tls: Tls = field(default_factory=Tls)
    credentials: Credentials = field(default_factory=StaticCredentials)
    proxy: str | None = field(default=None, repr=False)
    """URL of the HTTP proxy on the way, None for none."""
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    """Sent with each request: impersonation."""
    compression: bool = False
    """Ask for gzip. Saves bytes over the internet, costs CPU of both sides within a cluster: off there."""
    context: str = ""
    """Name of the kubeconfig's context, empty without one; for messages."""

    @property
    def address(self) -> str:
        """Scheme, host and port of the server: what messages may say of it, for the rest of a URL may be a secret."""
        parts = urlsplit(self.server)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
