"""The rules (CEL) of a TrainJob's schema, in Python: those that `admission.rules`, which judges runtimes' files, lacks.

By their text, so that a rule that is changed or new is noticed: `broken` raises KeyError for one that is not here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.rules import RULES, squeezed
from trainplane.api import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Tree = dict[str, Any]

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_TRAINER: Final = ("image", "command", "args", "env", "numNodes", "resourcesPerNode")
_WORDS: Final = ("auto", "cpu", "gpu")
_PLAIN: Final[dict[str, Callable[[Any], bool]]] = {
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')": lambda job: bool(
        _NAME.fullmatch(job["metadata"]["name"])
    ),
    "size(self.metadata.name) <= 63": lambda job: len(job["metadata"]["name"]) <= 63,
    "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')": lambda uri: not uri or bool(_URI.fullmatch(uri)),
    "self in ['trainer.kubeflow.org/trainjob-controller', 'kueue.x-k8s.io/multikueue']": lambda manager: (
        manager in {names.MANAGED_BY_TRAINER, names.MANAGED_BY_MULTIKUEUE}
    ),
    "has(self.lastUpdatedTime)": lambda status: "lastUpdatedTime" in status,
}
"""Rules of an object as it is."""


def _keeps_ref(ref: Tree, old: Tree) -> bool:
    moved = old.get("apiGroup") == names.LEGACY_GROUP and ref.get("apiGroup") == names.GROUP
    return ref == old or (moved and all(ref.get(key) == old.get(key) for key in ("kind", "name")))


def _keeps_trainer(trainer: Tree, old: Tree) -> bool:
    return all((field in trainer) == (field in old) for field in _TRAINER)


def _keeps_processes(number: Any, old: Any) -> bool:
    return number == old or (isinstance(number, int) and isinstance(old, str) and (str(number) == old or old in _WORDS))


_CHANGES: Final[tuple[tuple[str, Callable[[Any, Any], bool]], ...]] = (
    ("self == oldSelf || (oldSelf.apiGroup ==", _keeps_ref),
    ("has(self.image) == has(oldSelf.image) &&", _keeps_trainer),
    ("self == oldSelf || (type(self) == int", _keeps_processes),
    ("self == oldSelf", lambda value, old: bool(value == old)),
)
"""Rules of a change, by how they begin."""


def broken(value: Any, old: Any, schema: Tree) -> Iterator[str]:
    """Yield the rules that a value breaks, which has the types of its schema; `old` is what is stored, or None."""
    for rule in schema.get("x-kubernetes-validations", ()):
        text = squeezed(rule["rule"])
        if "oldSelf" in text:
            holds = old is None or next(check for begin, check in _CHANGES if text.startswith(begin))(value, old)
        else:
            holds = text in RULES or _PLAIN[text](value)  # the former are judged with the schema
        if not holds:
            yield str(rule["message"])
    if isinstance(value, dict):
        for name, part in schema.get("properties", {}).items():
            if name in value:
                yield from broken(value[name], old.get(name) if isinstance(old, dict) else None, part)
    elif isinstance(value, list):
        keys = schema.get("x-kubernetes-list-map-keys")
        for entry in value:
            yield from broken(entry, _former(entry, old, keys) if keys else None, schema["items"])


def _former(entry: Tree, old: Any, keys: list[str]) -> Any:
    """Return the entry that was stored under the same keys; lists without keys have no memory."""
    return next((one for one in old or () if all(one.get(key) == entry.get(key) for key in keys)), None)
