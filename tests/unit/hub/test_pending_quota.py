"""Quotas in trees of cohorts: against a model that hands quota out piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from trainplane.api.quantity import ZERO, Quantity
from trainplane.hub.pending.quota import FlavorResource, Quota, QuotaNode, QuotaTree, quotas_of, reserved_of

Tree = dict[str, Any]
OF = FlavorResource("a", "gpu")

amounts = st.integers(0, 12)
limits = st.none() | amounts


def resources(nominal: int, borrowing: int | None = None, lending: int | None = None) -> list[Tree]:
    resource: Tree = {"name": "gpu", "nominalQuota": str(nominal)}
    if borrowing is not None:
        resource["borrowingLimit"] = str(borrowing)
    if lending is not None:
        resource["lendingLimit"] = str(lending)
    return [{"coveredResources": ["gpu"], "flavors": [{"name": "a", "resources": [resource]}]}]


def queue(name: str, groups: list[Tree], *, cohort: str = "", used: int = 0) -> Tree:
    total = [{"name": "a", "resources": [{"name": "gpu", "total": str(used)}]}]
    spec = {"resourceGroups": groups, **({"cohortName": cohort} if cohort else {})}
    return {"metadata": {"name": name}, "spec": spec, "status": {"flavorsReservation": total}}


def cohort(name: str, groups: list[Tree], *, parent: str = "") -> Tree:
    spec = {"resourceGroups": groups, **({"parentName": parent} if parent else {})}
    return {"metadata": {"name": name}, "spec": spec}


@dataclass
class Fleet:
    """Cohorts and queues as objects, before anything is used."""

    cohorts: list[Tree]
    queues: list[Tree]

    def tree(self, used: dict[str, int] | None = None) -> QuotaTree:
        for each in self.queues:
            total = str((used or {}).get(each["metadata"]["name"], 0))
            each["status"]["flavorsReservation"][0]["resources"][0]["total"] = total
        return QuotaTree(self.queues, self.cohorts)


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    cohorts: list[Tree] = []
    for number in range(draw(st.integers(1, 4))):
        above = draw(st.sampled_from(["", *(f"c{n}" for n in range(number))]))
        groups = resources(draw(amounts), *((draw(limits), draw(limits)) if above else ()))
        cohorts.append(cohort(f"c{number}", groups, parent=above))
    queues = []
    for number in range(draw(st.integers(1, 4))):
        inside = draw(st.sampled_from([c["metadata"]["name"] for c in cohorts]))
        queues.append(queue(f"q{number}", resources(draw(amounts), draw(limits), draw(limits)), cohort=inside))
    return Fleet(cohorts, queues)


class Handing:
    """The model: quota is taken one unit at a time, from the node itself as long as it keeps some, else from above."""

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self.used = {id(node): 0 for node in (*tree.cohorts.values(), *tree.cluster_queues.values())}

    def may_take(self, node: QuotaNode) -> bool:
        quota, total = node.quota(OF), node.total(OF).value()
        kept = 0 if quota.lending_limit is None else max(0, total - quota.lending_limit.value())
        used = self.used[id(node)]
        if node.parent is None:
            return used < total
        if used < kept:
            return True
        if quota.borrowing_limit is not None and used >= total + quota.borrowing_limit.value():
            return False
        return self.may_take(node.parent)

    def take(self, node: QuotaNode) -> None:
        kept = node.kept(OF).value()
        used = self.used[id(node)]
        self.used[id(node)] += 1
        if node.parent is not None and used >= kept:
            self.take(node.parent)


@given(fleets(), st.lists(st.integers(0, 3), max_size=40), st.integers(0, 3))
def test_what_is_available_is_what_can_be_taken_piece_by_piece(fleet: Fleet, takers: list[int], asker: int) -> None:
    idle = fleet.tree()
    model = Handing(idle)
    used: dict[str, int] = {}
    for number in takers:
        name = f"q{number % len(fleet.queues)}"
        if model.may_take(idle.cluster_queues[name]):
            model.take(idle.cluster_queues[name])
            used[name] = used.get(name, 0) + 1
    name = f"q{asker % len(fleet.queues)}"
    available = fleet.tree(used).cluster_queues[name].available(OF).value()
    taken = 0
    while taken <= 200 and model.may_take(idle.cluster_queues[name]):
        model.take(idle.cluster_queues[name])
        taken += 1
    assert taken == max(0, available)


@given(fleets(), st.lists(st.integers(0, 3), max_size=30))
def test_usage_of_cohorts_is_what_their_queues_took_beyond_what_they_keep(fleet: Fleet, takers: list[int]) -> None:
    model = Handing(fleet.tree())
    used: dict[str, int] = {}
    for number in takers:
        name = f"q{number % len(fleet.queues)}"
        model.take(model.tree.cluster_queues[name])
        used[name] = used.get(name, 0) + 1
    tree = fleet.tree(used)
    for name, node in model.tree.cohorts.items():
        assert tree.cohorts[name].used(OF).value() == model.used[id(node)]


@given(fleets(), st.integers(0, 3))
def test_the_potential_is_what_an_idle_tree_gives(fleet: Fleet, asker: int) -> None:
    node = fleet.tree().cluster_queues[f"q{asker % len(fleet.queues)}"]
    assert node.potential(OF) == node.available(OF)


@given(fleets(), st.dictionaries(st.sampled_from(["q0", "q1", "q2", "q3"]), amounts), st.integers(0, 3))
def test_use_never_adds_to_what_is_available(fleet: Fleet, used: dict[str, int], asker: int) -> None:
    name = f"q{asker % len(fleet.queues)}"
    node = fleet.tree(used).cluster_queues[name]
    assert node.available(OF) <= node.potential(OF)


@given(fleets(), amounts, st.integers(0, 3))
def test_a_need_within_the_queue_s_own_quota_borrows_nothing(fleet: Fleet, need: int, asker: int) -> None:
    node = fleet.tree().cluster_queues[f"q{asker % len(fleet.queues)}"]
    amount = Quantity.of(need)
    level = node.borrowing_level(OF, amount)
    assert (level == 0) == (amount <= node.quota(OF).nominal)
    assert level <= len(list(node.ancestors()))


@given(amounts, amounts)
def test_a_queue_without_cohort_has_its_nominal_quota_whatever_its_borrowing_limit(nominal: int, used: int) -> None:
    tree = QuotaTree([queue("q", resources(nominal, borrowing=5), used=used)])
    assert tree.cluster_queues["q"].available(OF) == Quantity.of(nominal - used)
    assert tree.cluster_queues["q"].borrowing_level(OF, Quantity.of(99)) == 0


def test_a_lending_limit_keeps_the_rest_from_the_others() -> None:
    lender = queue("lender", resources(10, lending=4), cohort="c")
    borrower = queue("borrower", resources(1), cohort="c")
    tree = QuotaTree([lender, borrower])
    assert tree.cluster_queues["borrower"].available(OF) == Quantity.of(5)
    assert tree.cluster_queues["lender"].available(OF) == Quantity.of(11)


def test_a_borrowing_limit_bounds_what_a_queue_takes_from_the_cohort() -> None:
    tree = QuotaTree(
        [queue("q", resources(2, borrowing=3), cohort="c", used=4), queue("other", resources(10), cohort="c")]
    )
    assert tree.cluster_queues["q"].available(OF) == Quantity.of(1)
    assert tree.cluster_queues["q"].potential(OF) == Quantity.of(5)


def test_a_cohort_s_own_quota_is_for_all_below_it() -> None:
    tree = QuotaTree(
        [queue("q", resources(1), cohort="team")],
        [cohort("team", resources(2), parent="all"), cohort("all", resources(4))],
    )
    node = tree.cluster_queues["q"]
    assert node.available(OF) == Quantity.of(7)
    assert [node.borrowing_level(OF, Quantity.of(need)) for need in (1, 3, 7)] == [0, 1, 2]


def test_members_are_the_queues_under_one_root() -> None:
    queues = [
        queue("b", resources(1), cohort="left"),
        queue("a", resources(1), cohort="right"),
        queue("alone", resources(1)),
    ]
    cohorts = [cohort("left", [], parent="root"), cohort("right", [], parent="root")]
    tree = QuotaTree(queues, cohorts)
    assert tree.members("b") == ("b", "a")
    assert tree.members("alone") == ("alone",)


@pytest.mark.parametrize("parents", [{"x": "x"}, {"x": "y", "y": "x"}, {"x": "y", "y": "z", "z": "y"}])
def test_cohorts_in_a_circle_end(parents: dict[str, str]) -> None:
    cohorts = [cohort(name, resources(1), parent=parent) for name, parent in parents.items()]
    tree = QuotaTree([queue("q", resources(1), cohort="x")], cohorts)
    assert tree.cluster_queues["q"].available(OF) > ZERO


def test_more_may_be_used_than_there_is() -> None:
    tree = QuotaTree([queue("q", resources(2), used=5)])
    assert tree.cluster_queues["q"].available(OF) == Quantity.of(-3)


def test_quotas_are_read_with_their_limits() -> None:
    read = quotas_of(queue("q", resources(4, borrowing=2, lending=1)))
    assert read == {OF: Quota(Quantity.of(4), Quantity.of(2), Quantity.of(1))}
    assert quotas_of({"metadata": {"name": "q"}}) == {}
    assert reserved_of({"metadata": {"name": "q"}}) == {}


@given(fleets(), st.integers(1, 12), st.integers(0, 3))
def test_exact_amounts_stay_exact(fleet: Fleet, thousandths: int, asker: int) -> None:
    name = f"q{asker % len(fleet.queues)}"
    before = fleet.tree().cluster_queues[name].available(OF)
    assume(before > ZERO)
    used = Quantity.of(f"{thousandths}m")
    usage = fleet.queues[asker % len(fleet.queues)]["status"]["flavorsReservation"][0]["resources"][0]
    usage["total"] = str(used)
    assert QuotaTree(fleet.queues, fleet.cohorts).cluster_queues[name].available(OF) == before - used
