"""Objects that a schema accepts, made at random from a seed: small ones, which together use every field.

A field that no earlier object had, or that leads to such a field, is likely to be chosen, any other is not, so some
fifty objects visit all of a schema. What the schema cannot say (CEL, JobSet's habits) is not known here: the API server
is the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

Schema = dict[str, Any]

_NEW = 0.4
_LEADS_ON = 0.9
_KNOWN = 0.04
_QUANTITIES = ("1", "500m", "2Gi", "1.5", "1e3", "0", 4, "100k")
_WORDS = ("alpha", "beta", "gamma", "delta", "omega")
_MOMENT = "2026-01-02T03:04:05Z"


class Maker:
    """Makes objects of one schema; `special` makes the values of paths where a text of any kind would not do."""

    def __init__(
        self, schema: Schema, rng: random.Random, special: dict[str, Callable[[random.Random], Any]] | None = None
    ) -> None:
        self.schema = schema
        self.rng = rng
        self.special = special or {}
        self._names = 0
        self._unseen = fields(schema)
        self._all = len(self._unseen)

    def make(self) -> Any:
        """Return one more object."""
        return self._value(self.schema, "")

    def coverage(self) -> float:
        """Return the share of the schema's fields that some object had."""
        return 1 - len(self._unseen) / self._all

    def _value(self, schema: Schema, path: str) -> Any:
        tail = path.rpartition(".")[2]
        if path in self.special or tail in self.special:
            return self.special[path if path in self.special else tail](self.rng)
        if schema.get("x-kubernetes-int-or-string"):
            return self._int_or_string(schema)
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        makers = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._integer,
            "boolean": lambda *_: self.rng.random() < 0.5,
        }
        return makers[schema["type"]](schema, path)

    def _int_or_string(self, schema: Schema) -> int | str:
        if "pattern" in schema:
            return self.rng.choice(_QUANTITIES)
        return self.rng.choice((1, 2, 8, "auto", "gpu", "4", "50%"))

    def _object(self, schema: Schema, path: str) -> Any:
        if "additionalProperties" in schema:
            keys = self.rng.sample(_WORDS, self.rng.randint(0, 2))
            return {key: self._value(schema["additionalProperties"], f"{path}{{}}") for key in keys}
        properties = schema.get("properties", {})
        chosen = [name for name in properties if self._wanted(schema, name, f"{path}.{name}")]
        floor = schema.get("minProperties", 0) - len(chosen)
        if floor > 0:
            chosen += self.rng.sample([name for name in properties if name not in chosen], floor)
        self._unseen.difference_update(f"{path}.{name}" for name in chosen)
        return {name: self._value(properties[name], f"{path}.{name}") for name in chosen}

    def _wanted(self, schema: Schema, name: str, path: str) -> bool:
        if name in schema.get("required", ()) or name in schema.get("x-always", ()):
            return True
        if path in self._unseen:
            return self.rng.random() < _NEW
        leads_on = any(unseen.startswith(path) for unseen in self._unseen)
        return self.rng.random() < (_LEADS_ON if leads_on else _KNOWN)

    def _array(self, schema: Schema, path: str) -> list[Any]:
        least = max(schema.get("minItems", 0), 0)
        most = min(schema.get("maxItems", 2), max(2, least))
        items = [self._value(schema["items"], f"{path}[]") for _ in range(self.rng.randint(max(least, 1), most))]
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        if schema.get("x-kubernetes-list-type") == "set":
            return list(dict.fromkeys(items))
        if not keys:
            return items
        return list({tuple(item.get(key) for key in keys): item for item in items}.values())

    def _string(self, schema: Schema, _path: str) -> str:
        if schema.get("format") == "date-time":
            return _MOMENT
        self._names += 1
        text = f"{self.rng.choice(_WORDS)}-{self._names}"
        return text[: schema.get("maxLength", len(text))]

    def _integer(self, schema: Schema, _path: str) -> int:
        low = schema.get("minimum", 0)
        return self.rng.randint(low, min(schema.get("maximum", low + 9), low + 9))


def fields(schema: Schema, path: str = "") -> set[str]:
    """Return the path of every field of a schema."""
    found: set[str] = set()
    for name, inner in schema.get("properties", {}).items():
        found |= {f"{path}.{name}"} | fields(inner, f"{path}.{name}")
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            found |= fields(schema[key], path + step)
    return found
