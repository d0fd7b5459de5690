"""Explanations in the making: from a fault, or from a class of trouble and the words in which somebody told it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trainplane.api import tree as trees
from trainplane.explain.catalogue import class_of
from trainplane.explain.cleaning import MOST_LETTERS, clean
from trainplane.explain.explanation import Evidence, Explanation
from trainplane.explain.faults import telling_line
from trainplane.explain.pods import name_of

if TYPE_CHECKING:
    from trainplane.api.trainjob import FirstFault
    from trainplane.api.tree import Tree
    from trainplane.explain.explanation import State
    from trainplane.explain.trouble import Certainty


class Where(NamedTuple):
    """The pod that is in trouble."""

    step: str = ""
    pod: str = ""
    node: str = ""


NOWHERE: Final = Where()


def where_of(step: str, pod: Tree) -> Where:
    """Return a pod's names, cleaned."""
    return Where(step, clean(name_of(pod), 253), clean(trees.text(pod, "spec", "nodeName"), 253))


def of_fault(
    fault: FirstFault, step: str, certainty: Certainty, evidence: tuple[Evidence, ...], *, detail: str = ""
) -> Explanation:
    """Return the explanation of a failure by its first fault."""
    kind = class_of(fault.cause)
    quoted = detail or telling_line(fault)
    where = f" on {fault.node}" if fault.node else ""
    code = f" (exit code {fault.exit_code})" if fault.exit_code is not None else ""
    said = f": {quoted}" if quoted else ""
    return Explanation(
        "Failed",
        f"{step or fault.pod or 'a pod'}{where} {kind.says}{code}{said}",
        kind.name,
        kind.remedy,
        certainty,
        step=step,
        pod=fault.pod,
        node=fault.node,
        reason=fault.reason,
        detail=quoted,
        exit_code=fault.exit_code,
        evidence=evidence,
        log=tuple(fault.log),
    )


def of_class(
    state: State,
    cause: str,
    who: str,
    *,
    detail: str = "",
    source: str = "",
    certainty: Certainty | None = None,
    reason: str = "",
    where: Where = NOWHERE,
) -> Explanation:
    """Return an explanation by a class: who has that trouble, and the words in which `source` told it."""
    kind = class_of(cause)
    told = clean(detail)
    return Explanation(
        state,
        f"{who} {kind.says}{': ' if told else ''}{told}",
        kind.name,
        kind.remedy,
        certainty or kind.certainty,
        reason=reason or kind.name,
        detail=told,
        evidence=(Evidence(source, clean(detail, MOST_LETTERS)),) if source and told else (),
        step=where.step,
        pod=where.pod,
        node=where.node,
    )
