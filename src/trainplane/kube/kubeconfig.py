"""Kubeconfig files: read, merged and turned into a Config.

Merging is kubectl's: the first file that names a cluster, user, context or current context wins, whole, and paths are
relative to the file they stand in; within one file a name stands once. Certificates given as data win over files, as
does a token file over a token. No error quotes a file's line, for it may be the one with the token.

These are files of whoever runs us, and may run programs and read files. What others wrote is not for this module; the
kubeconfigs of workers are `hub.kubeconfigs`'.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import yaml

from trainplane.kube.config import Config
from trainplane.kube.credentials import (
    Credentials,
    StaticCredentials,
    TokenFile,
    basic,
    bearer,
    impersonation,
)
from trainplane.kube.errors import ConfigError
from trainplane.kube.execplugin import API_VERSIONS, ExecCredentials, ExecPlugin, InteractiveMode
from trainplane.kube.proxy import check_proxy, proxy_for
from trainplane.kube.tls import Tls, pem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.kube.clock import Clock

EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""Name of the cluster extension whose content is meant for exec plugins."""


class _Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class Cluster(msgspec.Struct, rename="kebab"):
    """A cluster entry."""

    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    disable_compression: bool = False
    extensions: list[_Extension] | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    """How a user entry describes an exec plugin."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode | None = None


class User(msgspec.Struct, rename="kebab"):
    """A user entry."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")


class Context(msgspec.Struct):
    """A context entry: a cluster, a user and a namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: Context


class _File(msgspec.Struct, rename="kebab"):
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class _Placed(NamedTuple):
    """An entry and the file it stands in."""

    entry: Any
    file: Path

    def path(self, value: str) -> Path:
        return self.file.parent / Path(value).expanduser()


class Kubeconfig:
    """Several files, merged."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self.current_context = ""
        self.clusters: dict[str, _Placed] = {}
        self.users: dict[str, _Placed] = {}
        self.contexts: dict[str, _Placed] = {}
        for file in files:
            content = _parse(_read(file), file)
            self.current_context = self.current_context or content.current_context or ""
            for kind, entries in (
                ("clusters", content.clusters),
                ("users", content.users),
                ("contexts", content.contexts),
            ):
                _once(file, kind, [entry.name for entry in entries or ()])
            for cluster in content.clusters or []:
                self.clusters.setdefault(cluster.name, _Placed(cluster.cluster, file))
            for user in content.users or []:
                self.users.setdefault(user.name, _Placed(user.user or User(), file))
            for context in content.contexts or []:
                self.contexts.setdefault(context.name, _Placed(context.context, file))

    def pick(self, kind: str, entries: Mapping[str, _Placed], name: str, asked_by: str) -> _Placed:
        """Return the entry of a name; raises ConfigError that lists the names there are."""
        if name not in entries:
            known = ", ".join(sorted(entries)) or "none"
            files = ", ".join(map(str, self.files))
            raise ConfigError(f"{asked_by} names {kind} {name!r}, which {files} does not have (it has: {known})")
        return entries[name]


def load_kubeconfig(files: Sequence[Path], *, context: str | None, environ: Mapping[str, str], clock: Clock) -> Config:
    """Return the Config of a context, by default the current one, of the merged files. Raises ConfigError."""
    return _config(Kubeconfig(files), context, environ, clock)


def _config(kubeconfig: Kubeconfig, context: str | None, environ: Mapping[str, str], clock: Clock) -> Config:
    name: str = context or kubeconfig.current_context
    if not name:
        known = ", ".join(sorted(kubeconfig.contexts)) or "none"
        where = ", ".join(map(str, kubeconfig.files))
        raise ConfigError(f"{where} sets no current-context: set one, or name one of its contexts (it has: {known})")
    asked_by = "the caller" if context else "current-context"
    chosen: Context = kubeconfig.pick("context", kubeconfig.contexts, name, asked_by).entry
    placed_cluster = kubeconfig.pick("cluster", kubeconfig.clusters, chosen.cluster, f"context {name!r}")
    placed_user = _Placed(User(), placed_cluster.file)
    if chosen.user:
        placed_user = kubeconfig.pick("user", kubeconfig.users, chosen.user, f"context {name!r}")
    cluster: Cluster = placed_cluster.entry
    user: User = placed_user.entry
    where_cluster = f"cluster {chosen.cluster!r} of {placed_cluster.file}"
    where_user = f"user {chosen.user!r} of {placed_user.file}"
    if not _is_url(cluster.server):
        raise ConfigError(f"{where_cluster}: server must be a URL that begins with https:// or http://")
    proxy = proxy_for(cluster.server, environ)
    if cluster.proxy_url:
        proxy = check_proxy(cluster.proxy_url, f"{where_cluster}: proxy-url")
    tls = _tls(placed_cluster, placed_user, where_cluster, where_user)
    return Config(
        server=cluster.server,
        namespace=chosen.namespace or "default",
        tls=tls,
        credentials=_credentials(placed_user, placed_cluster, where_user, clock),
        proxy=proxy,
        headers=_impersonation(user, where_user),
        compression=not cluster.disable_compression,
        context=name,
    )


def _is_url(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return server.startswith(("https://", "http://")) and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is none
        return False


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the kubeconfig {file}: {error}") from None


def _once(file: Path, kind: str, names: Sequence[str]) -> None:
    """Raise ConfigError if a name stands twice: which of the two is meant, readers disagree about; kubectl refuses."""
    places: dict[str, int] = {}
    for index, name in enumerate(names):
        first = places.setdefault(name, index)
        if first != index:
            problem = f"{kind}[{index}] has the name of {kind}[{first}]"
            raise ConfigError(f"the kubeconfig {file}: {problem}: give each a name of its own, or remove one")


def _parse(text: str, file: Path) -> _File:
    try:
        tree = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 both loaders are safe ones
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise ConfigError(f"the kubeconfig {file} is not YAML{where}") from None
    try:
        return msgspec.convert(tree or {}, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the kubeconfig {file} is not well-formed: {error}") from error


def _tls(cluster: _Placed, user: _Placed, where_cluster: str, where_user: str) -> Tls:
    entry: Cluster = cluster.entry
    identity: User = user.entry
    where = f"{where_cluster}: certificate-authority"
    authority = _pem(cluster, entry.certificate_authority, entry.certificate_authority_data, where)
    if entry.insecure_skip_tls_verify and authority is not None:
        text = "both insecure-skip-tls-verify and a certificate-authority are set: remove one"
        raise ConfigError(f"{where_cluster}: {text}")
    where = f"{where_user}: client-certificate"
    certificate = _pem(user, identity.client_certificate, identity.client_certificate_data, where)
    key = _pem(user, identity.client_key, identity.client_key_data, f"{where_user}: client-key")
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise ConfigError(f"{where_user}: {missing} is missing: a client certificate and its key go together")
    return Tls(
        ca=authority,
        certificate=certificate,
        key=key,
        server_name=entry.tls_server_name or None,
        insecure=entry.insecure_skip_tls_verify,
    )


def _pem(placed: _Placed, file: str | None, data: str | None, where: str) -> str | Path | None:
    if data:
        try:
            return pem(data)
        except ValueError as error:
            raise ConfigError(f"{where}-data {error}") from None
    if file:
        path = placed.path(file)
        if not path.exists():
            raise ConfigError(f"{where} is {path}, which does not exist")
        return path
    return None


def _credentials(user: _Placed, cluster: _Placed, where: str, clock: Clock) -> Credentials:
    """Return what a user entry identifies itself with, beside its certificate."""
    entry: User = user.entry
    if entry.auth_provider is not None:
        raise ConfigError(f"{where}: auth-provider is gone from Kubernetes; use the provider's exec plugin")
    if entry.token_file:
        return TokenFile(user.path(entry.token_file), clock, fallback=entry.token)
    if entry.token:
        return StaticCredentials(bearer(entry.token))
    if entry.username is not None or entry.password is not None:
        return StaticCredentials(basic(entry.username or "", entry.password or ""))
    if entry.exec is not None:
        return ExecCredentials(_plugin(entry.exec, user, cluster, where, clock), clock)
    return StaticCredentials()


def _plugin(entry: Exec, user: _Placed, cluster: _Placed, where: str, clock: Clock) -> ExecPlugin:
    if entry.api_version not in API_VERSIONS:
        known = " or ".join(API_VERSIONS)
        raise ConfigError(f"{where}: exec.apiVersion is {entry.api_version!r}, only {known} are known")
    if entry.interactive_mode is None and entry.api_version == API_VERSIONS[0]:
        raise ConfigError(f"{where}: exec.interactiveMode is missing; {API_VERSIONS[0]} requires it")
    is_relative = "/" in entry.command and not Path(entry.command).is_absolute()
    return ExecPlugin(
        command=str(user.path(entry.command)) if is_relative else entry.command,
        api_version=entry.api_version,
        args=tuple(entry.args or ()),
        env={variable.name: variable.value for variable in entry.env or []},
        install_hint=entry.install_hint,
        interactive_mode=entry.interactive_mode or "IfAvailable",
        cluster=_cluster_info(cluster) if entry.provide_cluster_info else None,
        clock=clock,
    )


def _cluster_info(cluster: _Placed) -> dict[str, Any]:
    """Return the cluster as an exec plugin is told of it."""
    entry: Cluster = cluster.entry
    authority = entry.certificate_authority_data
    if not authority and entry.certificate_authority:
        authority = base64.b64encode(cluster.path(entry.certificate_authority).read_bytes()).decode()
    told: dict[str, Any] = {
        "server": entry.server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify or None,
        "certificate-authority-data": authority,
        "proxy-url": entry.proxy_url,
        "disable-compression": entry.disable_compression or None,
        "config": next((item.extension for item in entry.extensions or [] if item.name == EXEC_EXTENSION), None),
    }
    return {name: value for name, value in told.items() if value is not None}


def _impersonation(user: User, where: str) -> list[tuple[str, str]]:
    groups, extra = user.impersonate_groups or (), user.impersonate_extra or {}
    try:
        return impersonation(user.impersonate, user.impersonate_uid, groups, extra)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
