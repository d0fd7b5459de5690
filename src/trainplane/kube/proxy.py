"""Which HTTP proxy, if any, the environment puts between us and a server.

HTTPS_PROXY, HTTP_PROXY and NO_PROXY as the cluster's other clients read them: NO_PROXY holds hosts, domains with or
without a leading dot, addresses, networks (10.0.0.0/8), each with an optional port, or `*`. Loopback is never proxied.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trainplane.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for `server`, None for a direct connection."""
    parts = urlsplit(server)
    variable = "https_proxy" if parts.scheme == "https" else "http_proxy"
    proxy = environ.get(variable.upper()) or environ.get(variable)
    host = parts.hostname or ""
    if not proxy or _is_loopback(host):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_matches(entry.strip().lower(), host.lower(), port) for entry in exceptions.split(",")):
        return None
    return check_proxy(proxy if "://" in proxy else f"http://{proxy}", f"{variable.upper()} of the environment")


def check_proxy(url: str, where: str) -> str:
    """Return `url` if we can speak through such a proxy; raises ConfigError naming `where` it stands, not the URL.

    It may have a password in it.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise ConfigError(f"{where}: a proxy is reached by http:// or https://, others (socks5) are not supported")
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _matches(entry: str, host: str, port: int) -> bool:
    if entry in {"", "*"}:
        return entry == "*"
    try:
        address = ip_address(host)
    except ValueError:
        address = None
    if address is not None:
        try:
            return address in ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass
    name, colon, wanted = entry.rpartition(":")
    if colon and wanted.isdigit():
        if int(wanted) != port:
            return False
        entry = name.strip("[]")
    domain = entry.removeprefix("*").lstrip(".")
    return (host == domain and not entry.startswith((".", "*."))) or host.endswith("." + domain)
