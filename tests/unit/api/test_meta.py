from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trainplane.api import document
from trainplane.api.meta import Condition, ObjectMeta, OwnerReference, controller_of, find, is_true, owner, upsert

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def condition(status: str = "True", kind: str = "Suspended", at: datetime | None = None) -> Condition:
    return Condition(type=kind, status=status, reason="R", message="m", last_transition_time=at)


def test_a_new_condition_goes_to_the_end_with_the_time_of_now() -> None:
    first = upsert([], condition(), NOON)
    both = upsert(first, condition(kind="Complete"), LATER)
    assert [one.type for one in both] == ["Suspended", "Complete"]
    assert both[0].last_transition_time == NOON
    assert both[1].last_transition_time == LATER


def test_the_time_moves_only_when_the_status_does() -> None:
    before = upsert([], condition(), NOON)
    same = upsert(before, condition(at=LATER), LATER)
    turned = upsert(same, condition("False"), LATER)
    assert same[0].last_transition_time == before[0].last_transition_time
    assert turned[0].last_transition_time == LATER


def test_a_condition_may_bring_its_own_time() -> None:
    copied = upsert([], condition(at=NOON), LATER)
    assert copied[0].last_transition_time == NOON


def test_the_message_follows_although_the_time_stays() -> None:
    before = upsert([], condition(), NOON)
    after = upsert(before, Condition(type="Suspended", status="True", reason="Other", message="n"), LATER)
    assert (after[0].reason, after[0].message) == ("Other", "n")
    assert before[0].reason == "R"


def test_find_and_is_true() -> None:
    conditions = [condition("False"), condition(kind="Failed")]
    assert find(conditions, "Failed") is conditions[1]
    assert find(conditions, "Complete") is None
    assert is_true(conditions, "Failed")
    assert not is_true(conditions, "Suspended")
    assert not is_true(conditions, "Complete")


def test_an_owner_controls_and_blocks() -> None:
    reference = owner("trainer.kubeflow.org/v1alpha1", "TrainJob", ObjectMeta(name="job", uid="u"))
    assert document.to_tree(reference) == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "name": "job",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_the_controller_is_one_of_the_owners() -> None:
    bystander = OwnerReference(api_version="v1", kind="ConfigMap", name="a", uid="1")
    controller = OwnerReference(api_version="v1", kind="TrainJob", name="b", uid="2", controller=True)
    assert controller_of(ObjectMeta(owner_references=[bystander, controller])) == controller
    assert controller_of(ObjectMeta(owner_references=[bystander])) is None
