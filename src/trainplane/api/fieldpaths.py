"""Sets of fields, as an admin writes them down: each path means a field and all that is below it.

    template.spec.replicatedJobs[*].template.spec.template.spec.nodeSelector
    template.spec.replicatedJobs[node].template.spec.template.metadata.annotations[example.com/note]

In brackets stands which entry of a list is meant, by its name, or which key of a map; `*` is any.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

ANY: Final = "*"
_FORM: Final = re.compile(r"[A-Za-z]\w*((\.[A-Za-z]\w*)|(\[[^\[\]]+\]))*")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class FieldPaths:
    """A set of fields, as seen from a place in a tree; `below` walks on beside whoever walks through the tree."""

    paths: tuple[tuple[str, ...], ...]
    """The steps that still lead to each."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> FieldPaths:
        """Return the set of some paths.

        Raises:
            ValueError: one has not the form of a path.
        """
        return cls(tuple(map(parse, texts)))

    def below(self, step: str) -> FieldPaths:
        """Return the set as seen one step further: from a field, or from a list's entry of that name."""
        return FieldPaths(tuple(path[1:] for path in self.paths if path and path[0] in {step, ANY}))

    @property
    def holds_all(self) -> bool:
        """Whether this place itself is in the set, and so is all that is below it."""
        return () in self.paths


def parse(text: str) -> tuple[str, ...]:
    """Return the steps of a path.

    Raises:
        ValueError: it has another form.
    """
    if not _FORM.fullmatch(text):
        raise ValueError(f"{text!r} is no path of a field: write one such as template.spec.replicatedJobs[*].template")
    return tuple(name or key for name, key in _STEP.findall(text))


def problem_of(text: str, schema: dict[str, Any]) -> str:
    """Return what is wrong with a path of an object with this schema; empty if nothing is."""
    try:
        steps = parse(text)
    except ValueError as error:
        return str(error)
    for step in steps:
        if schema.get("type") == "array":
            schema = schema["items"]
        elif "additionalProperties" in schema:
            schema = schema["additionalProperties"]
        elif step in schema.get("properties", {}):
            schema = schema["properties"][step]
        else:
            close = difflib.get_close_matches(step, schema.get("properties", {}), n=1)
            return f"{text!r}: there is no field {step}" + (f": did you mean {close[0]}?" if close else "")
    return ""
