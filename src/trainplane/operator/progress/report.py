"""A report of progress: the request's path and body, judged. Pure.

What is answered with 200 is written later, together with others, so it must be judged before: by the schema of
`status.trainerStatus`, its CEL rule included, with the field's name in what is said. Two things are refused that the
schema would let pass, because people and terminals read these texts: control characters, and times without a zone or
so far off that they are none in UTC.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.schema_validation import judge
from trainplane.api import document, names
from trainplane.api import tree as trees
from trainplane.api.crds.schema import schema_of
from trainplane.api.errors import DecodeError
from trainplane.api.meta import whole_seconds
from trainplane.api.trainjob import TrainerStatus
from trainplane.kube.resource import Key
from trainplane.operator.progress.refusal import RefusalError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

BODY_LIMIT: Final = 64 << 10
"""Bytes of a request's body, as the reference has it."""

_FIELD: Final = "trainerStatus"
_SCHEMA: Final = schema_of(TrainerStatus)
_KNOWN: Final = frozenset(_SCHEMA["properties"])
_MOST: Final[int] = _SCHEMA["properties"]["metrics"]["maxItems"]
_METRIC: Final = frozenset(_SCHEMA["properties"]["metrics"]["items"]["properties"])
_PREFIX: Final = names.status_path("", "").partition("//")[0] + "/"


@dataclass(frozen=True, slots=True)
class Report:
    """What a pod said of its TrainJob's progress, as it is written."""

    status: Tree
    """The whole of `status.trainerStatus`."""
    moment: datetime
    """When, by the pod's own clock."""


def job_of(path: str, subject: str = "status") -> Key | None:
    """Return the TrainJob whose status a path is, or what else it tells; None for any other path."""
    namespace, _, rest = path.removeprefix(_PREFIX).partition("/trainjobs/")
    name, _, end = rest.partition("/")
    if not path.startswith(_PREFIX) or end != subject or not _is_name(namespace) or not _is_name(name):
        return None
    return Key(namespace, name)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= 253 and text.isascii() and text.replace("-", "").replace(".", "").isalnum()


def read_report(body: bytes) -> Report | None:
    """Return what a request's body says; None if it says nothing, which is no error.

    Fields that we do not know are left out, as the API server would.

    Raises:
        RefusalError: it is no JSON, or breaks a rule; the message names the field.
    """
    try:
        tree = document.decode_tree(body)
    except DecodeError as error:
        raise RefusalError(422, str(error)) from error
    if not isinstance(tree, dict):
        raise RefusalError(422, f'the body must be an object such as {{"{_FIELD}": {{"lastUpdatedTime": "…"}}}}')
    told = trees.without_nulls(tree.get(_FIELD))
    if told is None or told == {}:
        return None
    status = _known(told)
    for problem in judge(status, _SCHEMA, (_FIELD,)):
        raise RefusalError(422, f"{_written(problem.path)}: {problem.text}")
    _judge_texts(status.get("metrics") or ())
    moment = _moment(status)
    return Report({**status, "lastUpdatedTime": as_written(moment)}, moment)


def as_written(moment: datetime) -> str:
    """Return a moment as Kubernetes writes it, in whole seconds; such texts compare as the moments do."""
    return whole_seconds(moment).isoformat().replace("+00:00", "Z")


def _known(told: Any) -> Any:
    """Return a status without fields that the schema does not know; what has another form is left to the judge."""
    if not isinstance(told, dict):
        return told
    status = {name: value for name, value in told.items() if name in _KNOWN}
    metrics = status.get("metrics")
    if isinstance(metrics, list):
        if len(metrics) > _MOST:  # before each of them is looked at
            raise RefusalError(422, f"{_FIELD}.metrics: has {len(metrics)} entries, and may have {_MOST}")
        status["metrics"] = [
            {name: value for name, value in one.items() if name in _METRIC} if isinstance(one, dict) else one
            for one in metrics
        ]
    return status


def _judge_texts(metrics: Any) -> None:
    for index, metric in enumerate(metrics):
        for name, text in metric.items():
            if not text.isprintable() and any(unicodedata.category(letter)[0] == "C" for letter in text):
                raise RefusalError(422, f"{_FIELD}.metrics[{index}].{name}: has control characters: leave them out")


def _moment(status: Tree) -> datetime:
    try:
        moment = document.view(status, TrainerStatus).last_updated_time
        assert moment is not None  # noqa: S101 the schema's rule has judged it
        return moment.astimezone(UTC)
    except (DecodeError, OverflowError, ValueError) as error:
        text = f"{_FIELD}.lastUpdatedTime: is no time with a zone, such as 2026-01-31T08:15:00Z"
        raise RefusalError(422, text) from error


def _written(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
