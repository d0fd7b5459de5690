"""Where the cluster is and who we are to it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainplane.kube.clock import Clock, SystemClock
from trainplane.kube.credentials import Credentials, StaticCredentials, TokenFile
from trainplane.kube.errors import ConfigError
from trainplane.kube.proxy import proxy_for
from trainplane.kube.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def load_config(
    path: str | Path | None = None,
    *,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Clock | None = None,
) -> Config:
    """Find the cluster as kubectl does: `path`, else the files of KUBECONFIG, else ~/.kube/config, else the pod's own.

    A `path` that is given must exist; of KUBECONFIG's files the missing ones are passed over. Raises ConfigError, which
    names what was looked at.
    """
    environ = os.environ if environ is None else environ
    clock = clock or SystemClock()
    files = [Path(path)] if path is not None else kubeconfig_files(environ)
    present = files if path is not None else [file for file in files if file.exists()]
    if present:
        from trainplane.kube.kubeconfig import load_kubeconfig  # noqa: PLC0415 yaml is slow to import, and rare in pods

        return load_kubeconfig(present, context=context, environ=environ, clock=clock)
    if context is not None:
        looked = ", ".join(map(str, files)) or "nowhere"
        raise ConfigError(f"context {context!r} is asked for, but there is no kubeconfig (looked at {looked})")
    if "KUBERNETES_SERVICE_HOST" in environ:
        return in_cluster(environ=environ, service_account=service_account, clock=clock)
    looked = ", ".join(map(str, files))
    raise ConfigError(
        f"no cluster is configured: there is no kubeconfig at {looked}, and this is no pod. Set KUBECONFIG"
    )


def kubeconfig_files(environ: Mapping[str, str]) -> list[Path]:
    """Return the files that KUBECONFIG lists, or the one in the home directory."""
    listed = [entry for entry in environ.get("KUBECONFIG", "").split(os.pathsep) if entry]
    if listed:
        return [Path(entry).expanduser() for entry in dict.fromkeys(listed)]
    return [Path(environ.get("HOME") or Path.home()) / ".kube" / "config"]


def in_cluster(
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Clock | None = None,
) -> Config:
    """Return the configuration of a pod from its environment and its mounted service account."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        text = "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set"
        raise ConfigError(text)
    token, authority = service_account / "token", service_account / "ca.crt"
    if not token.exists():
        text = f"no service account token at {token}: set automountServiceAccountToken, or give a kubeconfig"
        raise ConfigError(text)
    try:
        namespace = (service_account / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Config(
        server=server,
        namespace=namespace or "default",
        tls=Tls(ca=authority if authority.exists() else None),
        credentials=TokenFile(token, clock or SystemClock()),
        proxy=proxy_for(server, environ),
    )
