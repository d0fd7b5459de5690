"""Ports of a node: what the reference makes of a runtime's, and what we do, worked out from the case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance import context as it
from tests.conformance.compare import ABSENT, tree_differences

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

USUAL = 29500
_ANNOTATION = "trainer.kubeflow.org/port"
_MEET = {"torch", "jax", "xgboost"}
"""Frameworks whose nodes meet at a port of the first."""
BESIDE = ("ConfigMap", "Secret", "PodGroup")


def number(case: Case) -> int:
    """Return the port at which nodes meet: the one that the runtime's annotation sets, or the usual one."""
    annotations = it.runtime(case)["metadata"].get("annotations") or {}
    return int(annotations.get(_ANNOTATION, USUAL))


def adds(found: Difference) -> bool:
    """Match the port of a node without `spec.trainer`, and its ownership."""
    if it.has_trainer(found.case) or not it.in_node(found, "ports"):
        return False
    theirs, ours = _both(found.case, it.node(found.case))
    if it.is_owned(found):
        return found.reference == ABSENT and it.keys(found, "ports") == _keys(ours) - _keys(theirs)
    return (found.reference, found.ours) == (theirs or ABSENT, ours)


def keeps(found: Difference) -> bool:
    """Match a port, or a part of one, that the reference lost, and JobSets that it so cannot make.

    It gives up at the first object that is refused, and in which order it comes to them differs from start to start: so
    what a framework or a gang has beside its JobSet may be missing there, too. The snapshot is made before.
    """
    if (found.path, found.reference) == ("", ABSENT):
        is_snapshot = found.place.endswith("-runtime-snapshot")
        return it.within(found, "JobSet", *BESIDE) and not is_snapshot and are_refused(found.case)
    if not (it.has_trainer(found.case) and it.in_node(found, "ports")):
        return False
    theirs, ours = _both(found.case, it.node(found.case))
    if not it.is_owned(found):
        tail = found.path.partition(".containers[node].ports")[2]
        return (tail, found.reference, found.ours) in tree_differences(theirs, ours)
    has, lacks = (theirs, ours) if found.ours == ABSENT else (ours, theirs)
    return ABSENT in (found.reference, found.ours) and it.keys(found, "ports") <= _keys(
        [one for one in has if one not in lacks]
    )


def are_refused(case: Case) -> bool:
    """Tell if the reference makes two ports of one key, which the API server refuses."""
    lists = [_both(case, one)[0] for one in it.containers(case)]
    return any(len(_keys(ports)) < len(ports) for ports in lists)


def _both(case: Case, container: Tree) -> tuple[list[Tree], list[Tree]]:
    """Return the ports of a container: the reference's, without the zeros that Go drops, and ours."""
    given = [{"protocol": "TCP", **port} for port in container.get("ports", ())]
    is_node = container is it.node(case) and bool(_MEET & it.policy(case).keys())
    added = [{"containerPort": number(case), "protocol": "TCP"}] if is_node else []
    ours = given if any(port["containerPort"] == number(case) for port in given) else [*given, *added]
    theirs = given
    for port in _put(given, {**added[0], "containerPort": USUAL}) if added and it.has_trainer(case) else given:
        theirs = _put(theirs, port)
    return [{key: value for key, value in port.items() if value or key == "containerPort"} for port in theirs], ours


def _put(ports: list[Tree], one: Tree) -> list[Tree]:
    """Return ports with one in the place of the first of its number or name, or at the end; no name is a name there."""
    for place, port in enumerate(ports):
        if port["containerPort"] == one["containerPort"] or port.get("name") == one.get("name"):
            return [*ports[:place], one, *ports[place + 1 :]]
    return [*ports, one]


def _keys(ports: list[Tree]) -> set[str]:
    return {f'k:{{"containerPort":{port["containerPort"]},"protocol":"{port["protocol"]}"}}' for port in ports}
