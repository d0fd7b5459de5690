"""What a container is told: variables from fields, ConfigMaps and Secrets, and `$(NAME)` in texts. Pure.

The rules are the kubelet's: `envFrom` first, then `env` in order; `$(NAME)` means a variable that stands before, `$$`
is a dollar sign, and a name that is unknown stays as it is written.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import tree as trees
from trainplane.api.quantity import Quantity
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trainplane.api.tree import Tree

_REFERENCE: Final = re.compile(r"\$\$|\$\(([^()\s]+)\)")
_KEYED: Final = re.compile(r"^metadata\.(labels|annotations)\['(.+)'\]$")
_FIELDS: Final = {
    "metadata.name": ("metadata", "name"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "status.podIP": ("status", "podIP"),
    "status.podIPs": ("status", "podIP"),
    "status.hostIP": ("status", "hostIP"),
    "status.hostIPs": ("status", "hostIP"),
}
_FIXED: Final = {"metadata.namespace": "default", "spec.serviceAccountName": "default"}


@dataclass(frozen=True)
class Sources:
    """What variables and volumes may refer to."""

    config_maps: Mapping[str, Mapping[str, str | bytes]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    @classmethod
    def of(cls, objects: Sequence[Tree], secrets: Mapping[str, Mapping[str, str]]) -> Sources:
        """Take the job's own objects, and the user's secrets."""
        maps: dict[str, Mapping[str, str | bytes]] = {}
        known: dict[str, Mapping[str, bytes]] = {
            name: {key: value.encode() for key, value in values.items()} for name, values in secrets.items()
        }
        for entry in objects:
            name, data = entry["metadata"]["name"], entry.get("data") or {}
            if entry["kind"] == "ConfigMap":
                packed = {key: base64.b64decode(value) for key, value in (entry.get("binaryData") or {}).items()}
                maps[name] = {**data, **packed}
            elif entry["kind"] == "Secret":
                plain = {key: value.encode() for key, value in (entry.get("stringData") or {}).items()}
                known[name] = {key: base64.b64decode(value) for key, value in data.items()} | plain
        return cls(maps, known)

    def config_map(self, name: str, place: str, *, optional: bool = False) -> Mapping[str, str | bytes]:
        """Return a ConfigMap's data.

        Raises:
            InvalidError: this job has none of that name.
        """
        if name in self.config_maps:
            return self.config_maps[name]
        if optional:
            return {}
        raise InvalidError(
            f"{place}: ConfigMap {name} is in a cluster, and this runs on your machine: write its values as variables, "
            "or use the Kubernetes backend"
        )

    def secret(self, name: str, place: str, *, optional: bool = False) -> Mapping[str, bytes]:
        """Return a Secret's data.

        Raises:
            InvalidError: nobody said what it means here.
        """
        if name in self.secrets:
            return self.secrets[name]
        if optional:
            return {}
        raise InvalidError(
            f"{place}: there is no Secret {name} on your machine: say what it means here, with "
            f'secrets={{"{name}": {{"KEY": "VALUE"}}}} in the backend\'s configuration'
        )


def variables(container: Tree, pod: Tree, sources: Sources, place: str) -> dict[str, str]:
    """Return the variables of a container; `place` is what errors call it.

    Raises:
        InvalidError: one refers to what is not here.
    """
    found: dict[str, str] = {}
    for index, source in enumerate(container.get("envFrom") or ()):
        found |= _all_of(source, sources, f"{place}.envFrom[{index}]")
    for entry in container.get("env") or ():
        name = entry["name"]
        if entry.get("valueFrom") is not None:
            value = _value_from(entry["valueFrom"], container, pod, sources, f"{place}.env[name={name}]")
            if value is None:
                continue
            found[name] = value
        else:
            found[name] = expand(str(entry.get("value") or ""), found)
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with each `$(NAME)` that is known replaced."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replaced, text)


def command_line(container: Tree, variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return a container's command and arguments, with variables in them."""
    return (
        [expand(str(word), variables) for word in container.get("command") or ()],
        [expand(str(word), variables) for word in container.get("args") or ()],
    )


def _all_of(source: Tree, sources: Sources, place: str) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    data: Mapping[str, Any] = {}
    for kind, read in (("configMapRef", sources.config_map), ("secretRef", sources.secret)):
        if kind in source:
            data = read(source[kind]["name"], f"{place}.{kind}", optional=bool(source[kind].get("optional")))
    return {prefix + key: value.decode() if isinstance(value, bytes) else value for key, value in data.items()}


def _value_from(source: Tree, container: Tree, pod: Tree, sources: Sources, place: str) -> str | None:
    if "fieldRef" in source:
        return field_of(source["fieldRef"].get("fieldPath", ""), pod, place)
    if "resourceFieldRef" in source:
        return _resource(source["resourceFieldRef"], container)
    for kind, read in (("configMapKeyRef", sources.config_map), ("secretKeyRef", sources.secret)):
        if kind not in source:
            continue
        reference = source[kind]
        name, key, optional = reference["name"], reference["key"], bool(reference.get("optional"))
        data = read(name, f"{place}.{kind}", optional=optional)
        if key in data:
            value: str | bytes = data[key]
            return value.decode() if isinstance(value, bytes) else value
        if optional:
            return None
        raise InvalidError(f"{place}.{kind}: {name} has no key {key}; it has {', '.join(sorted(data)) or 'none'}")
    raise InvalidError(f"{place}: a variable from {', '.join(source)} is not known here: write its value")


def field_of(path: str, pod: Tree, place: str) -> str:
    """Return a field of a pod as the downward API has it.

    Raises:
        InvalidError: there is no such field.
    """
    keyed = _KEYED.match(path)
    if keyed:
        return str(trees.get(pod, "metadata", keyed[1], keyed[2]) or "")
    if path in _FIXED:
        return _FIXED[path]
    if path in _FIELDS:
        return str(trees.get(pod, *_FIELDS[path]) or "")
    raise InvalidError(f"{place}: field {path} cannot be known here: write its value")


def _resource(reference: Tree, container: Tree) -> str:
    kind, _, name = str(reference.get("resource", "")).partition(".")
    given = trees.get(container, "resources", kind, name)
    amount = Quantity.of(given if given is not None else 0)
    divisor = Quantity.of(reference.get("divisor") or "1")
    unit = divisor.milli_value() or 1000
    return str(-(-amount.milli_value() // unit))
