"""Kubeconfigs of workers, judged before they are used: what Kueue refuses, and when a token ends.

Who may write a Secret in Kueue's namespace must not thereby run a program in Kueue or make it read its files, so Kueue
refuses kubeconfigs that name programs, files or passwords (`InsecureKubeConfig`). We hold to the same rules, for the
same reason, and name everything that is wrong at once where Kueue names the first.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import ipaddress
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
import yaml

from trainplane.api import tree as trees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree

_DNS: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

_INLINE: Final = "write it into the kubeconfig as"


def refusals(text: str) -> tuple[str, ...]:
    """Return why Kueue would refuse this kubeconfig, empty if it would not. Each names the entry and what to do."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        return (f"the kubeconfig is not YAML: {' '.join(str(error).split())}",)
    if not isinstance(tree, dict):
        return ("the kubeconfig is empty: put in one with a cluster, a user and a current-context",)
    return (*_clusters(tree), *_files_of_tokens(tree), *_current_user(tree))


def token_end(text: str) -> datetime | None:
    """Return when the bearer token of the current user ends, None where it has none or does not say."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError:
        return None
    _, user = _current(tree if isinstance(tree, dict) else {})
    parts = str(user.get("token") or "").split(".")
    if len(parts) != 3:
        return None
    padded = parts[1] + "=" * (-len(parts[1]) % 4)
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(padded), type=dict[str, Any])
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (binascii.Error, msgspec.MsgspecError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _clusters(tree: Tree) -> Iterator[str]:
    for name, cluster in _entries(tree, "clusters", "cluster"):
        if cluster.get("insecure-skip-tls-verify"):
            yield f"cluster {name!r} sets insecure-skip-tls-verify: remove it and give certificate-authority-data"
        if cluster.get("certificate-authority"):
            yield f"cluster {name!r} names a certificate-authority file: {_INLINE} certificate-authority-data"
        server = str(cluster.get("server") or "")
        if not server:
            yield f"cluster {name!r} has no server: give the URL of the worker's API server"
        elif not _is_host(server):
            yield f"cluster {name!r} has server {server!r}, whose host is neither an IP address nor a DNS name"


def _files_of_tokens(tree: Tree) -> Iterator[str]:
    for name, user in _entries(tree, "users", "user"):
        if user.get("tokenFile"):
            yield f"user {name!r} names a tokenFile: {_INLINE} token"


def _current_user(tree: Tree) -> Iterator[str]:
    name, user = _current(tree)
    if user.get("username") or user.get("password"):
        yield f"user {name!r} has a user name and password: use a token or a client certificate"
    if user.get("exec"):
        yield f"user {name!r} runs a program (exec): use a token of a ServiceAccount on the worker"
    if user.get("auth-provider"):
        yield f"user {name!r} has an auth-provider: use a token of a ServiceAccount on the worker"
    for key in ("client-certificate", "client-key"):
        if user.get(key) and not user.get(f"{key}-data"):
            yield f"user {name!r} names a {key} file: {_INLINE} {key}-data"


def _current(tree: Tree) -> tuple[str, Tree]:
    """Return the name and the entry of the current context's user."""
    contexts = dict(_entries(tree, "contexts", "context"))
    context = contexts.get(str(tree.get("current-context") or ""), {})
    name = str(context.get("user") or "")
    return name, dict(_entries(tree, "users", "user")).get(name, {})


def _entries(tree: Tree, plural: str, key: str) -> Iterator[tuple[str, Tree]]:
    listed = tree.get(plural)
    for entry in listed if isinstance(listed, list) else ():
        content = trees.get(entry, key)
        yield str(trees.get(entry, "name") or ""), content if isinstance(content, dict) else {}


def _is_host(server: str) -> bool:
    try:
        host = urlsplit(server.lower()).hostname or ""
    except ValueError:
        return False
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return len(host) <= 253 and _DNS.fullmatch(host) is not None
