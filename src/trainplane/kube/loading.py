"""Which cluster is meant: a kubeconfig that is named or found where kubectl looks, or the pod's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.kube.clock import Clock, SystemClock
from trainplane.kube.config import SERVICE_ACCOUNT, Config
from trainplane.kube.credentials import TokenFile
from trainplane.kube.errors import ConfigError
from trainplane.kube.proxy import proxy_for
from trainplane.kube.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        namespace = (service_account / "namespace").read_text(encoding="utf-8").strip()
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
