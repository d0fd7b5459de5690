"""Differences between two observations of one case, each at the smallest path that differs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Step, Tree
    from tests.conformance.side import Answer

ABSENT = "<absent>"
MASTER = ("MASTER_ADDR", "MASTER_PORT")
"""Variables that every Torch job of ours has more: each differs by itself, or it would hide what differs beside it."""
_ROOT = "<nil>"
"""What the API server calls the whole object; it adds a cause for it to almost every refusal."""
_DENIED = re.compile(r'^admission webhook "[^"]+" denied the request: ')
_NAMED = re.compile(r"(?:^|\[|, |: |- )((?:spec|metadata)[\w.\[\]=/-]*): ", re.MULTILINE)


@dataclass(frozen=True)
class Verdict:
    """What admission said, `warned` how often; the words, of a refusal or of warnings, are not compared."""

    code: int
    fields: tuple[str, ...] = ()
    warned: int = 0
    message: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the request was let through."""
        return self.code < 400


@dataclass(frozen=True)
class Difference:
    """One difference: `place` is `verdict` or an object, `path` a place in it; `step` is where it appeared."""

    case: Case
    number: int
    step: Step | None
    place: str
    path: str
    reference: Any
    ours: Any
    message: str = ""
    refused: frozenset[int] = frozenset()
    """Earlier steps that both sides refused: they changed nothing."""

    def __str__(self) -> str:
        label = self.step.label if self.step else "setup"
        left, right = (json.dumps(value, default=str)[:300] for value in (self.reference, self.ours))
        said = f"\n    ({self.message[:400]})" if self.message else ""
        head = f"{self.case} [{self.number}: {label}] {self.place} {self.path}"
        return f"{head}\n    reference {left}\n    ours      {right}{said}"


def verdict(answer: Answer) -> Verdict:
    """Return what an answer decides: code, the fields it names, how often it warns.

    The schema's refusals list causes; so may a webhook's. The reference's webhook has a sentence alone, whose fields
    stand before a colon.
    """
    warned = len(answer.warnings)
    if answer.code < 400:
        return Verdict(answer.code, warned=warned, message="\n".join(answer.warnings))
    message = str(answer.body.get("message", ""))
    causes = (answer.body.get("details") or {}).get("causes") or []
    fields = [cause["field"] for cause in causes if cause.get("field") not in (None, "", _ROOT)]
    if not causes:
        fields = named_fields(message)
    return Verdict(answer.code, tuple(sorted(set(fields))), warned, message)


def named_fields(message: str) -> list[str]:
    """Return the fields that a refusal names before a colon."""
    return _NAMED.findall(_DENIED.sub("", message))


def verdict_differences(reference: Verdict, ours: Verdict) -> list[tuple[str, Any, Any]]:
    """Return what two verdicts differ in."""
    pairs: list[tuple[str, Any, Any]] = [("code", reference.code, ours.code)]
    if reference.code == ours.code:
        pairs.append(("fields", list(reference.fields), list(ours.fields)))
    if reference.accepted and ours.accepted:
        pairs.append(("warned", reference.warned, ours.warned))
    return [(name, left, right) for name, left, right in pairs if left != right]


def object_differences(reference: dict[str, Tree], ours: dict[str, Tree]) -> list[tuple[str, str, Any, Any]]:
    """Return what the objects of a case differ in: object, path, both values."""
    found = []
    for place in sorted({*reference, *ours}):
        left, right = reference.get(place, ABSENT), ours.get(place, ABSENT)
        found += [(place, where, a, b) for where, a, b in tree_differences(left, right)]
    return found


def tree_differences(left: Any, right: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Return the smallest paths at which two trees differ; lists of unequal length differ as a whole.

    An entry of a list stands in a path by the name or type that both give it, else by its number.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in sorted({*left, *right}):
            found += tree_differences(left.get(key, ABSENT), right.get(key, ABSENT), f"{path}.{key}" if path else key)
        return found
    if isinstance(left, list) and isinstance(right, list):
        found, right = _apart(left, right, path)
        if len(left) != len(right):
            return [*found, (path, left, right)]
        for number, (one, other) in enumerate(zip(left, right, strict=True)):
            found += tree_differences(one, other, f"{path}[{_label(one, other) or number}]")
        return found
    return [] if _same(left, right) else [(path, left, right)]


def _apart(left: list[Any], right: list[Any], path: str) -> tuple[list[tuple[str, Any, Any]], list[Any]]:
    """Return the variables of `MASTER` that only the right list has, as differences, and the list without them."""
    if not path.endswith(".env"):
        return [], right
    more = {*MASTER} - {entry["name"] for entry in left}
    found = [(f"{path}[{entry['name']}]", ABSENT, entry) for entry in right if entry["name"] in more]
    return found, [entry for entry in right if entry["name"] not in more]


def _label(one: Any, other: Any) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in ("name", "type"):
            if isinstance(one.get(key), str) and one[key] == other.get(key):
                return str(one[key])
    return ""


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)
