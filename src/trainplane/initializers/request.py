"""What is asked for: the environment of the step, read once.

The names are the reference's (STORAGE_URI, ACCESS_TOKEN, IGNORE_PATTERNS, ENDPOINT, …), so its runtimes and the
official SDK drive this program; an empty value means that it is not set, as there.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from trainplane.initializers.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

What: TypeAlias = Literal["dataset", "model", "output"]

FOLDERS: Final[dict[What, Path]] = {
    "dataset": Path("/workspace/dataset"),
    "model": Path("/workspace/model"),
    "output": Path("/workspace/output"),
}
HUB_MODEL_PATTERNS: Final = ("*.json", "*.safetensors", "*.model", "*.txt", "*.gguf")
"""What the reference fetches of a model of the hub; ALLOW_PATTERNS says otherwise."""
_VARIABLES: Final[dict[What, str]] = {"dataset": "STORAGE_URI", "model": "STORAGE_URI", "output": "OUTPUT_URI"}
_FIELDS: Final[dict[What, str]] = {
    "dataset": "spec.initializer.dataset.storageUri",
    "model": "spec.initializer.model.storageUri",
    "output": "the annotation trainplane.dev/output",
}
_MAX_URI: Final = 2048


@dataclass(frozen=True)
class Limits:
    """How much, how many and how long; each is a variable of its name in capitals."""

    parallel: int = 8
    """Ranges that are read at once."""
    part_mib: int = 16
    """MiB of a range: what a kill loses at most of each."""
    retry_seconds: int = 600
    """How long a range is tried again without getting on."""
    stall_seconds: int = 60
    """A silence that is taken for a broken connection."""
    max_files: int = 100_000
    """More files than that are taken for a listing without end."""


_BOUNDS: Final = {
    "parallel": 64,
    "part_mib": 64,
    "retry_seconds": 86_400,
    "stall_seconds": 3_600,
    "max_files": 10_000_000,
}


@dataclass(frozen=True)
class Request:
    """One thing to fetch and the folder it goes to, or to send and the folder that it is in."""

    what: What
    uri: str
    folder: Path
    env: Mapping[str, str] = field(repr=False)
    """Variables that are set and not empty; credentials are among them."""
    allow: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    limits: Limits = Limits()
    learn: Callable[[str], None] = field(default=lambda _: None, repr=False)
    """Called with each secret that turns up on the way, so that it is never printed."""

    @property
    def variable(self) -> str:
        """The variable that the URI comes in, for messages."""
        return _VARIABLES[self.what]

    @property
    def scheme(self) -> str:
        """The URI's scheme."""
        return urlsplit(self.uri).scheme

    @property
    def identity(self) -> str:
        """What two requests for the same data have in common, whoever asks."""
        decisive = [self.uri, self.env.get("REVISION", ""), self.env.get("ENDPOINT", ""), *self.allow, "", *self.ignore]
        return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


def read_request(what: str, environment: Mapping[str, str], folder: Path | None = None) -> Request:
    """Return what the environment asks for; an `InvalidError` names the variable that cannot mean anything."""
    part = next((known for known in FOLDERS if known == what), None)
    if part is None:
        raise InvalidError(f"the step must be dataset, model or output, and is {what!r}")
    env = {name: value for name, value in environment.items() if value}
    variable = _VARIABLES[part]
    uri = env.get(variable, "").strip()
    if not uri:
        raise InvalidError(f"{variable} is not set", f"set {_FIELDS[part]}, or {variable}")
    if len(uri) > _MAX_URI or not uri.isprintable():
        raise InvalidError(f"{variable} is longer than {_MAX_URI} characters, or has control characters")
    limits = {name: number(env, name.upper(), bound) for name, bound in _BOUNDS.items() if name.upper() in env}
    return Request(
        part,
        uri,
        folder or FOLDERS[part],
        env,
        _patterns(env, "ALLOW_PATTERNS") or (HUB_MODEL_PATTERNS if uri.startswith("hf://") and what == "model" else ()),
        _patterns(env, "IGNORE_PATTERNS"),
        Limits(**limits),
    )


def _patterns(env: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(filter(None, (pattern.strip() for pattern in env.get(name, "").split(","))))


def number(env: Mapping[str, str], name: str, bound: int) -> int:
    """Return a variable that is a whole number from 1 to a bound."""
    text = env[name].strip()
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= bound):
        raise InvalidError(f"{name} must be a whole number from 1 to {bound}, and is {text[:20]!r}")
    return int(text)


def flag(env: Mapping[str, str], name: str) -> bool:
    """Return whether a variable says yes."""
    text = env.get(name, "false").strip().lower()
    if text not in ("true", "false", "1", "0", "yes", "no"):
        raise InvalidError(f"{name} must be true or false, and is {text[:20]!r}")
    return text in ("true", "1", "yes")
