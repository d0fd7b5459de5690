"""Kubeconfigs of workers, as Secrets hold them: a Config or a WorkerCredentialsError, and no word of the content.

Every text holds a canary where a token, a key and a password stand. It may be in the Config and nowhere else: not in an
error's text, nor in those of the errors behind it, which a log prints too. Nor may a Config run a program, open a file
or speak in clear.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import yaml

from tests.security.fuzz.mutations import Mutator
from tests.security.fuzz.pems import CERTIFICATE, KEY
from tests.security.fuzz.target import BrokenPromiseError, Target
from trainplane.hub.errors import WorkerCredentialsError
from trainplane.hub.workers import WorkerKubeconfig, config_of
from trainplane.kube.credentials import StaticCredentials

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

    from trainplane.kube.config import Config

CANARY: Final = "c4n4ryT0k3n"
_CERTIFICATE: Final = base64.b64encode(CERTIFICATE.encode()).decode()
_KEY: Final = base64.b64encode(KEY.encode()).decode()
_SECRETS: Final = (CANARY, KEY.splitlines()[1][20:44], _KEY[60:90])
"""What no message may have: the token, and a part of the key as it stands in the text and in it decoded."""


def _seed(**user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority-data": _CERTIFICATE}}
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }


_SEEDS: Final = (
    _seed(token=CANARY),
    _seed(token=f"a.{CANARY}.b"),
    _seed(**{"client-certificate-data": _CERTIFICATE, "client-key-data": _KEY}),
)
_HOSTILE: Final[tuple[tuple[str, Any], ...]] = (
    ("exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false", "interactiveMode": "Never"}),
    ("exec", {"command": "/bin/false", "apiVersion": "client.authentication.k8s.io/v1beta1", "args": [CANARY]}),
    ("auth-provider", {"name": "gcp", "config": {"cmd-path": "/bin/false"}}),
    ("tokenFile", "/etc/hostname"),
    ("client-certificate", "/etc/hostname"),
    ("client-key", "/etc/hostname"),
    ("password", CANARY),
    ("username", "me"),
    ("as", "system:admin"),
    ("as-user-extra", {"a": ["b"]}),
)
_OF_CLUSTER: Final[tuple[tuple[str, Any], ...]] = (
    ("server", "http://10.0.0.1"),
    ("server", f"https://user:{CANARY}@10.0.0.1"),
    ("server", "https://[::1"),
    ("server", "https://10.0.0.1:99999"),
    ("insecure-skip-tls-verify", True),
    ("certificate-authority", "/etc/hostname"),
    ("proxy-url", f"http://me:{CANARY}@proxy"),
    ("tls-server-name", CANARY),
    ("extensions", [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}]),
)


class Kubeconfigs(Target):
    """Texts of kubeconfigs."""

    name: ClassVar[str] = "kubeconfigs"
    cases: ClassVar[int] = 110_000

    def __init__(self) -> None:
        self._seeds = [msgspec.json.encode(seed) for seed in _SEEDS]
        self._texts = [yaml.safe_dump(seed).encode() for seed in _SEEDS]

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        if mutator.chance(0.35):
            return mutator.bytes(mutator.pick(self._texts))
        tree = msgspec.json.decode(mutator.pick(self._seeds))
        if mutator.chance(0.6):
            self._attack(tree, mutator)
        if mutator.chance(0.6):
            tree = mutator.tree(tree)
        text = msgspec.json.encode(tree)  # JSON is YAML
        if mutator.chance(0.2):
            text = mutator.bytes(text, 1)
        return text

    def _attack(self, tree: dict[str, Any], mutator: Mutator) -> None:
        """Put in what a worker's kubeconfig must not have, perhaps beside an entry that is good."""
        for _ in range(mutator.few(2)):
            plural, key = mutator.pick(
                (("users", "user"), ("users", "user"), ("clusters", "cluster"), ("contexts", "context"))
            )
            entry = msgspec.json.decode(msgspec.json.encode(tree[plural][0]))
            field, value = mutator.pick(_OF_CLUSTER if plural == "clusters" else _HOSTILE)
            if plural != "contexts":
                entry[key][field] = value
            if mutator.chance(0.5):
                tree[plural].insert(mutator.below(2), entry)
            else:
                tree[plural][0] = entry

    def run(self, data: bytes) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("latin-1")  # a Secret that is no UTF-8 is refused before, see `Workers.source`
        try:
            config = config_of(WorkerKubeconfig("worker1", "Secret kueue-system/worker1", text))
        except WorkerCredentialsError as error:
            for one in _chain(error):
                if any(secret in text for secret in _SECRETS for text in (str(one), repr(one.args))):
                    raise BrokenPromiseError(f"a {type(one).__name__} quotes the kubeconfig") from None
            return "refused"
        _check(config)
        return "taken"

    def seeds(self) -> Iterable[bytes]:
        """Return the good ones, as YAML."""
        return self._texts


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that a traceback would print with it."""
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None:
            yield one
            waiting += [one.__cause__, one.__context__]


def _check(config: Config) -> None:
    """Raise if using this Config runs a program, opens a file or speaks in clear."""
    if not config.server.startswith("https://"):
        raise BrokenPromiseError(f"a server in clear: {config.server[:20]!r}")
    if not isinstance(config.credentials, StaticCredentials):
        raise BrokenPromiseError(f"credentials that run or open something: {type(config.credentials).__name__}")
    tls = config.tls
    if tls.insecure or any(not isinstance(part, str | None) for part in (tls.ca, tls.certificate, tls.key)):
        raise BrokenPromiseError("TLS that trusts anybody, or opens a file")
