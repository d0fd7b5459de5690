"""Where an admin lists the fields that patches may set, they set no others."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.admission.objects import KUEUE, OURS, entry, plain, runtime, trainjob, with_spec
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.trainjobs import validate_trainjob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.api.tree import Tree

POD = "template.spec.replicatedJobs[*].template.spec.template"
SPEC = f"{POD}.spec"


def refused(
    new: Tree | list[Tree], allowed: Sequence[str] | None, old: list[Tree] | None = None
) -> list[tuple[str, str]]:
    job = trainjob(suspend=True, runtimePatches=new) if isinstance(new, list) else new
    verdict = validate_trainjob(
        job,
        None if old is None else trainjob(suspend=True, runtimePatches=old),
        runtime=runtime(),
        runtime_source="live",
        jobset=None,
        pipeline=plain(),
        allowed_patches=allowed,
    )
    return [(one.path, one.problem) for one in verdict.errors if "may not be patched" in one.problem]


GREEDY: dict[str, Any] = {
    "serviceAccountName": "admin",
    "volumes": [{"name": "host", "hostPath": {"path": "/"}}],
    "containers": [{"name": "node", "securityContext": {"privileged": True}}],
}


def test_without_a_list_every_field_may_be_set() -> None:
    assert refused([entry(**GREEDY)], None) == []


def test_a_refusal_names_the_fields_and_the_setting() -> None:
    ((path, problem),) = refused([entry(**GREEDY)], [f"{SPEC}.nodeSelector"])
    pod = ".template.spec.replicatedJobs[name=node].template.spec.template.spec"
    assert path == f"spec.runtimePatches[manager=example.com/me].trainingRuntimeSpec{pod}.serviceAccountName"
    assert f"{pod}.volumes" in problem
    assert f"{pod}.containers[name=node].securityContext.privileged" in problem
    assert problem.startswith("may not be patched by admission.allowedRuntimePatches of the operator, nor may ")
    assert problem.endswith(f": allowed are {SPEC}.nodeSelector")


@pytest.mark.parametrize(
    ("pod", "allowed"),
    [
        ({"nodeSelector": {"a": "b"}}, [f"{SPEC}.nodeSelector"]),
        ({"nodeSelector": {"a": "b"}}, [f"{SPEC}.nodeSelector[a]"]),
        ({"nodeSelector": {"a": "b"}}, [SPEC]),
        ({"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x"}]}, [f"{SPEC}.{x}" for x in GREEDY] + [SPEC]),
        (GREEDY, [f"{SPEC}.{field}" for field in GREEDY]),
        (GREEDY, ["template"]),
        (
            {"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]},
            [f"{SPEC}.containers[node].env"],
        ),
        ({"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]}, [f"{SPEC}.containers[*].env[A]"]),
        ({"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}, [f"{SPEC}.volumes[*].emptyDir"]),
        ({"imagePullSecrets": [{"name": "mine"}]}, [f"{SPEC}.imagePullSecrets[mine]"]),
        ({"nodeSelector": {}, "volumes": []}, []),
        ({"containers": [{"name": "node"}]}, []),
    ],
)
def test_what_is_listed_may_be_set(pod: Any, allowed: list[str]) -> None:
    assert refused([entry(**pod)], allowed) == []


@pytest.mark.parametrize(
    ("pod", "allowed"),
    [
        ({"nodeSelector": {"a": "b"}}, []),
        ({"nodeSelector": {"a": "b", "c": "d"}}, [f"{SPEC}.nodeSelector[a]"]),
        ({"nodeSelector": {"a": "b"}}, ["template.spec.replicatedJobs[launcher].template"]),
        ({"containers": [{"name": "side", "env": [{"name": "A"}]}]}, [f"{SPEC}.containers[node].env"]),
        ({"containers": [{"name": "node", "env": [{"name": "B"}]}]}, [f"{SPEC}.containers[*].env[A]"]),
        ({"initContainers": [{"name": "node", "env": [{"name": "A"}]}]}, [f"{SPEC}.containers[*].env"]),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, [f"{SPEC}.volumes[*].emptyDir"]),
        ({"imagePullSecrets": [{"name": "yours"}]}, [f"{SPEC}.imagePullSecrets[mine]"]),
        ({"tolerations": [{"key": "x"}]}, [f"{SPEC}.nodeSelector"]),
        ({"terminationGracePeriodSeconds": 0}, [f"{SPEC}.nodeSelector"]),
    ],
)
def test_nothing_else(pod: Any, allowed: list[str]) -> None:
    assert len(refused([entry(**pod)], allowed)) == 1


def test_an_entry_that_is_stored_is_let_be_and_a_change_is_not() -> None:
    """The setting came later: jobs that wait must start all the same."""
    stored = entry(**GREEDY)
    assert refused([stored, entry(KUEUE, nodeSelector={"a": "b"})], [], [stored, entry(KUEUE)]) == []
    assert refused([entry(**GREEDY, nodeSelector={"a": "b"})], [], [stored])
    assert refused([stored, entry("example.com/you", nodeSelector={"a": "b"})], [], [stored])


def test_under_kueues_name_only_placing_is_free() -> None:
    placing: dict[str, Any] = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "x"}],
        "schedulingGates": [{"name": "g"}],
    }
    assert refused([entry(KUEUE, **placing)], [], [entry(KUEUE)]) == []
    assert refused([entry(KUEUE, **placing, **GREEDY)], [], [entry(KUEUE)])
    assert refused([entry("example.com/me", **placing)], [])


def older(job: Tree) -> Tree:
    return default_trainjob(job, None, now=datetime(2026, 1, 1, tzinfo=UTC)).tree


@pytest.mark.parametrize(
    "spec",
    [
        {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"serviceAccountName": "admin"}}]},
        {"podSpecOverrides": [{"targetJobs": [{"name": "node"}], "serviceAccountName": "admin"}]},
        {"labels": {"a": "b"}},
        {"annotations": {"a": "b"}},
    ],
)
def test_older_fields_are_the_patches_that_they_become(spec: Tree) -> None:
    assert refused(older(with_spec(trainjob(), **spec)), [f"{SPEC}.nodeSelector"])
    assert refused(older(with_spec(trainjob(), **spec)), ["template"]) == []


def test_labels_of_older_generations_are_the_pods_too() -> None:
    job = older(with_spec(trainjob(), labels={"a": "b"}))
    assert refused(job, ["template.metadata.labels"])
    assert refused(job, ["template.metadata.labels", f"{POD}.metadata.labels"]) == []
    assert job["spec"]["runtimePatches"][0]["manager"] == OURS


def test_a_refusal_stays_short() -> None:
    pod: dict[str, Any] = {"nodeSelector": {f"key-{number}": "x" for number in range(5000)}}
    ((_, problem),) = refused([entry(**pod)], [f"{SPEC}.tolerations"])
    assert len(problem) < 2000
