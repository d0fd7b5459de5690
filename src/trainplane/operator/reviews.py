"""What all reviews have in common: the objects under review as trees, and verdicts as answers."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Final

import msgspec

from trainplane.admission.message import describe, shortened, shown
from trainplane.api import document
from trainplane.api.errors import DecodeError
from trainplane.kube.admission import allow, deny
from trainplane.operator.errors import BudgetError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.kube.admission import AdmissionRequest
    from trainplane.kube.admission import Verdict as Answer
    from trainplane.kube.webhook import Review
    from trainplane.render.findings import Verdict

_Fields: Final = dict[str, msgspec.Raw]


def refusing(review: Review) -> Review:
    """Return a review that refuses, in words, what is too large or too intricate to be looked at."""

    async def refuse(request: AdmissionRequest) -> Answer:
        try:
            answer = review(request)
            return await answer if inspect.isawaitable(answer) else answer
        except (DecodeError, BudgetError) as error:
            return deny(f"this {request.kind.kind} is refused: {shortened(str(error))}", code=422)

    return refuse


def new_of(request: AdmissionRequest) -> Tree:
    """Return the object under review."""
    return _tree(request.decode(_Fields))


def old_of(request: AdmissionRequest) -> Tree | None:
    """Return the object under review as it was; None if it is new."""
    return _tree(request.decode_old(_Fields)) if request.operation == "UPDATE" else None


def named(request: AdmissionRequest) -> str:
    """Return what people call the object under review."""
    return f"{request.kind.kind} {request.name}"


def answer_of(verdict: Verdict, kind: str) -> Answer:
    """Return a verdict on an object of a kind as the API server wants it."""
    if verdict.allowed:
        return allow(warnings=shown(verdict.warnings))
    return deny(describe(verdict, kind), warnings=shown(verdict.warnings))


def _tree(fields: dict[str, msgspec.Raw]) -> Tree:
    """Return an object that is under review, without its managedFields: they are as large as the rest, and unread."""
    text = msgspec.json.encode(fields)
    try:
        metadata = msgspec.json.decode(fields.get("metadata", b"{}"), type=_Fields)
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise DecodeError("metadata", str(error)) from error
    if metadata.pop("managedFields", None) is not None:
        text = msgspec.json.encode({**fields, "metadata": metadata})
    tree: Tree = document.decode_tree(text)
    return tree
