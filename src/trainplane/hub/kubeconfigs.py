"""Kubeconfigs of workers: turned into the very Config that will be used, or refused.

Who may write a Secret in Kueue's namespace must not thereby run a program here, make us read our files or send our
requests in clear; so a kubeconfig is read by a reader that knows no programs, files, passwords and unverified TLS. It
makes a Config of texts alone, and that Config is what is used: nothing is read a second time. Whatever it does not know
is refused, as is all by which two readers could read two things (`strictyaml`).

Kueue refuses much of the same (`InsecureKubeConfig`) and names the first that is wrong; we name all. We also refuse
what Kueue does not look at: `http://`, entries that are not the current ones, keys that no kubeconfig has.

A problem is told by its path and line. No message has anything of the content in it, not even a name: people put
tokens into the wrong places, and our messages go to logs and to whoever may see a TrainJob.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trainplane.kube import strictyaml
from trainplane.kube.config import Config
from trainplane.kube.credentials import StaticCredentials, bearer, impersonation
from trainplane.kube.errors import ConfigError
from trainplane.kube.proxy import proxy_for
from trainplane.kube.tls import Tls, pem
from trainplane.kube.validity import certificate_end, token_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

KUBECONFIG_KEY: Final = "kubeconfig"
"""The key of a worker's Secret."""
_MOST_PROBLEMS: Final = 20
"""Told at once: a message is read by a person."""
_MOST_KEY: Final = 8 * 1024
"""Characters of a client key. RSA of 8192 bits has 6,400; a key of ten times that would take minutes to sign with."""

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_DNS: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*", re.IGNORECASE | re.ASCII)
_HOST: Final = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[0-9]{1,5}))?"
_SERVER: Final = re.compile(rf"https://{_HOST}(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?")
_PROXY: Final = re.compile(rf"https?://(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?{_HOST}/?")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,16384}")

_EXTENSIONS: Final = "extensions"
_TOP: Final = ("apiVersion", "kind", "preferences", "clusters", "users", "contexts", "current-context", _EXTENSIONS)
_CLUSTER: Final = (
    "server",
    "certificate-authority-data",
    "tls-server-name",
    "proxy-url",
    "disable-compression",
    _EXTENSIONS,
)
_USER: Final = (
    "token",
    "client-certificate-data",
    "client-key-data",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    _EXTENSIONS,
)
_CONTEXT: Final = ("cluster", "user", "namespace", _EXTENSIONS)

_INLINE: Final = "is a file: write its content into the kubeconfig as"
_SERVICE_ACCOUNT: Final = "use the token of a ServiceAccount on the worker"
_REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "cluster": {
        "insecure-skip-tls-verify": "is not allowed: remove it and give certificate-authority-data",
        "certificate-authority": f"{_INLINE} certificate-authority-data",
    },
    "user": {
        "exec": f"runs a program: {_SERVICE_ACCOUNT}",
        "auth-provider": f"runs an auth provider: {_SERVICE_ACCOUNT}",
        "tokenFile": f"{_INLINE} token",
        "client-certificate": f"{_INLINE} client-certificate-data",
        "client-key": f"{_INLINE} client-key-data",
        "username": f"is a login with a password: {_SERVICE_ACCOUNT}",
        "password": f"is a login with a password: {_SERVICE_ACCOUNT}",
    },
}
"""What kubeconfigs may have and these must not, and what to do instead. Set to nothing (null, "", false) it is as good
as absent, as for kubectl."""


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig, judged."""

    config: Config | None = None
    """How to reach the worker: exactly what was judged. None if it must not be used."""
    token_end: datetime | None = None
    """When its bearer token ends; None where it has none or does not say."""
    certificate_end: datetime | None = None
    """When its client certificate ends; None where it has none."""
    refusals: tuple[str, ...] = ()
    """Why it must not be used, each with its place and what to do; empty if it may."""


def judge(text: str, environ: Mapping[str, str] | None = None) -> Kubeconfig:
    """Read the current context of a kubeconfig. Raises nothing, whatever the text is.

    `environ` is where this process's own proxies are taken from, by default its environment.
    """
    document = strictyaml.read(text)
    if document.problems:
        return _refused(document.problems)
    if not isinstance(document.content, strictyaml.Mapping):
        return _refused(("it is empty: put in a kubeconfig with a cluster, a user and a current-context",))
    problems: list[str] = []
    context = _read(_Fields("", document.content, problems).only(*_TOP))
    if context is None or problems:
        return _refused(problems)
    try:
        config = _config(context, os.environ if environ is None else environ)
    except ConfigError as error:
        return _refused((str(error),))
    return Kubeconfig(config, token_end(context.user.token), certificate_end(context.user.certificate))


class _Cluster(NamedTuple):
    server: str = ""
    authority: str | None = None
    server_name: str | None = None
    proxy: str | None = None
    compression: bool = True


class _User(NamedTuple):
    token: str = ""
    certificate: str | None = None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class _Context(NamedTuple):
    cluster: _Cluster
    user: _User
    namespace: str


def _read(top: _Fields) -> _Context | None:
    """Return the current context with what it names; None if that is not there."""
    for key, wanted in (("apiVersion", "v1"), ("kind", "Config")):
        if top.text(key) not in {"", wanted}:
            top.note(key, f"must be {wanted}")
    top.fields("preferences").only("colors", _EXTENSIONS)
    clusters = {name: _cluster(fields) for name, fields in top.entries("clusters", "cluster")}
    users = {name: _user(fields) for name, fields in top.entries("users", "user")}
    contexts = {name: fields.only(*_CONTEXT) for name, fields in top.entries("contexts", "context")}
    current = top.text("current-context")
    if not current:
        top.note("current-context", "is missing: name the context to use")
        return None
    if current not in contexts:
        top.note("current-context", "names none of the contexts")
        return None
    context = contexts[current]
    cluster, user = context.text("cluster"), context.text("user")
    namespace = context.text("namespace", _is_label, "must be a name of a namespace") or "default"
    if cluster not in clusters:
        context.note("cluster", "names none of the clusters")
    if user and user not in users:
        context.note("user", "names none of the users")
    return _Context(clusters.get(cluster, _Cluster()), users.get(user, _User()), namespace)


def _cluster(fields: _Fields) -> _Cluster:
    fields.only(*_CLUSTER, refused=_REFUSED["cluster"])
    server = fields.text("server")
    if not fields.has("server"):
        fields.note("server", "is missing: give the URL of the worker's API server")
    elif server.lower().startswith("http://"):
        fields.note("server", "must begin with https://: without TLS, the token could be read on the way")
    elif server and not _is_url(_SERVER, server):
        fields.note("server", "must be https:// with an IP address or DNS name, and perhaps a port and a path")
    return _Cluster(
        server,
        fields.pem("certificate-authority-data"),
        fields.text("tls-server-name", _is_host, "must be an IP address or DNS name") or None,
        fields.text("proxy-url", _is_proxy, "must be http:// or https:// with an IP address or DNS name") or None,
        not fields.flag("disable-compression"),
    )


def _user(fields: _Fields) -> _User:
    fields.only(*_USER, refused=_REFUSED["user"])
    token = fields.text("token", _is_token, "must be visible ASCII characters without blanks, 16384 at most")
    certificate = fields.pem("client-certificate-data")
    key = fields.pem("client-key-data", _MOST_KEY)
    if fields.has("client-certificate-data") != fields.has("client-key-data"):
        fields.note("", "client-certificate-data and client-key-data go together: give both")
    groups = fields.texts("as-groups", str.isprintable)
    extra = fields.lists("as-user-extra", str.isprintable)
    who, uid = (fields.text(name, str.isprintable, "must be printable characters") for name in ("as", "as-uid"))
    try:
        headers = impersonation(who, uid, groups, extra)
    except ValueError as error:
        fields.note("", str(error))
        headers = []
    return _User(token, certificate, key, tuple(headers))


def _config(context: _Context, environ: Mapping[str, str]) -> Config:
    """Return the Config of a context; raises ConfigError if OpenSSL can do nothing with its certificates."""
    cluster, user, namespace = context
    tls = Tls(cluster.authority, user.certificate, user.key, cluster.server_name)
    if cluster.authority or user.certificate:
        tls.context()
    return Config(
        server=cluster.server,
        namespace=namespace,
        tls=tls,
        credentials=StaticCredentials(bearer(user.token) if user.token else None),
        proxy=cluster.proxy or proxy_for(cluster.server, environ),
        headers=user.headers,
        compression=cluster.compression,
    )


@dataclass(slots=True)
class _Fields:
    """One mapping of a kubeconfig: gives its fields by their types, and notes what is wrong with them."""

    path: str
    content: Any
    problems: list[str]
    _fields: strictyaml.Mapping = field(default_factory=strictyaml.Mapping)

    def __post_init__(self) -> None:
        if isinstance(self.content, strictyaml.Mapping):
            self._fields = self.content
        elif self.content is not None:
            self.note("", "must be a mapping of keys to values")

    def note(self, key: str, problem: str) -> None:
        """Note a problem of a field, or with no key of the whole."""
        path = f"{self.path}.{key}" if self.path and key else self.path or key
        line = self._fields.lines.get(key)
        self.problems.append(f"{path} (line {line}) {problem}" if line else f"{path} {problem}")

    def only(self, *known: str, refused: Mapping[str, str] | None = None) -> _Fields:
        """Note all fields but the `known`, those that are `refused` with the reason; look into the extensions."""
        refused = refused or {}
        for key, line in self._fields.lines.items():
            if key in refused:
                if self._fields[key] not in (None, "", False):
                    self.note(key, refused[key])
            elif key not in known:
                where = f" of {self.path}" if self.path else ""
                self.problems.append(f"line {line}: a key{where} that is not known: remove it")
        if _EXTENSIONS in known:
            for _ in self.entries(_EXTENSIONS, "extension", opaque=True):
                pass  # what tools note for themselves is not for us
        return self

    def has(self, key: str) -> bool:
        """Return whether a field is there and not empty."""
        return self._fields.get(key) not in (None, "")

    def text(self, key: str, accepts: Callable[[str], object] | None = None, wanted: str = "") -> str:
        """Return a text, empty if there is none or not what `accepts`."""
        value = self._fields.get(key)
        if value is None or value == "":
            return ""
        if not isinstance(value, str):
            self.note(key, "must be a text: put it into quotes")
            return ""
        if accepts is not None and not accepts(value):
            self.note(key, wanted)
            return ""
        return value

    def flag(self, key: str) -> bool:
        """Return a truth value, false if there is none."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, bool):
            self.note(key, "must be true or false")
        return value is True

    def pem(self, key: str, most: int | None = None) -> str | None:
        """Return the PEM text of a field in base64, None if there is none."""
        data = self.text(key)
        if not data:
            return None
        try:
            text = pem(data)
        except ValueError as error:
            self.note(key, str(error))
            return None
        if most is not None and len(text) > most:
            self.note(key, f"is longer than {most} characters: use a shorter key")
            return None
        return text

    def texts(self, key: str, accepts: Callable[[str], object]) -> tuple[str, ...]:
        """Return a list of texts, empty if there is none."""
        value = self._fields.get(key)
        if value is None:
            return ()
        if not _are_texts(value, accepts):
            self.note(key, "must be a list of texts of printable characters")
            return ()
        return tuple(value)

    def lists(self, key: str, accepts: Callable[[str], object]) -> dict[str, tuple[str, ...]]:
        """Return lists of texts by their keys, empty if there are none."""
        inner = self.fields(key)
        if not all(accepts(name) and _are_texts(value, accepts) for name, value in inner._fields.items()):
            self.note(key, "must have a list of texts of printable characters to each key")
            return {}
        return {name: tuple(value) for name, value in inner._fields.items()}

    def fields(self, key: str) -> _Fields:
        """Return the mapping of a field, an empty one if there is none."""
        return _Fields(f"{self.path}.{key}" if self.path else key, self._fields.get(key), self.problems)

    def entries(self, key: str, inner: str, *, opaque: bool = False) -> Iterator[tuple[str, _Fields]]:
        """Iterate over a list of named entries; notes names that stand twice. Opaque ones are not looked into."""
        value = self._fields.get(key)
        if value is not None and not isinstance(value, list):
            self.note(key, "must be a list")
            return
        path = f"{self.path}.{key}" if self.path else key
        names: dict[str, int] = {}
        for index, content in enumerate(value or ()):
            entry = _Fields(f"{path}[{index}]", content, self.problems).only("name", inner)
            name = entry.text("name")
            first = names.setdefault(name, index)
            if first != index:
                entry.note("name", f"is the one of {path}[{first}]: give each a name of its own, or remove one")
            if not opaque:
                yield name, entry.fields(inner)


def _are_texts(value: Any, accepts: Callable[[str], object]) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and accepts(one) for one in value)


def _refused(problems: Sequence[str]) -> Kubeconfig:
    more = len(problems) - _MOST_PROBLEMS
    told = tuple(problems[:_MOST_PROBLEMS])
    return Kubeconfig(refusals=(*told, f"and {more} more problems") if more > 0 else told)


def _is_url(pattern: re.Pattern[str], url: str) -> bool:
    found = pattern.fullmatch(url)
    if found is None or (found["port"] and not 0 < int(found["port"]) < 65536):
        return False
    host = found["host"]
    return _is_host(host) if ":" not in host else host[0] == "[" and _is_host(host[1:-1])


def _is_proxy(url: str) -> bool:
    return _is_url(_PROXY, url)


def _is_host(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return "%" not in host and ipaddress.ip_address(host) is not None
    return _DNS.fullmatch(host) is not None


def _is_token(token: str) -> bool:
    return _TOKEN.fullmatch(token) is not None


def _is_label(text: str) -> bool:
    return re.fullmatch(_LABEL, text) is not None
