"""What the API server calls things: resources, paths and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote


class Key(NamedTuple):
    """An object's place within its resource; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource as the API server serves it. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What an object of this resource carries as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the resource, of its part in a namespace, of an object or of a subresource.

        Raises ValueError rather than address something else than the caller meant: a namespace on a cluster-scoped
        resource, a namespaced object without its namespace, a name that is no path segment.
        """
        parts = ["/apis/" + self.group if self.group else "/api", self.version]
        if namespace:
            if not self.namespaced:
                raise ValueError(f"{self.plural} is cluster-scoped: call it without namespace {namespace!r}")
            parts += ["namespaces", _segment(namespace)]
        elif self.namespaced and name is not None:
            raise ValueError(f"{self.plural} {name!r} is namespaced: say in which namespace it is")
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            if name is None:
                raise ValueError(f"subresource {subresource!r} of {self.plural} needs the name of an object")
            parts.append(subresource)
        return "/".join(parts)


def _segment(value: str) -> str:
    if value in {"", ".", ".."}:
        raise ValueError(f"{value!r} cannot be the name of an object or namespace")
    return quote(value, safe=":@!$&'()*+,;=")


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
SECRETS = Resource("", "v1", "secrets", "Secret")
