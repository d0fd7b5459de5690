"""Fields that are rendered or stored otherwise are known by who said them, and hide no fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Change, Step
from tests.conformance.compare import ABSENT, Difference
from tests.conformance.documents import (
    container,
    patch,
    patch_job,
    replicated_job,
    runtime,
    torch,
)
from tests.conformance.planted import (
    CONTAINER,
    ENV,
    JOB,
    JOBSET,
    KUEUE,
    OWNED,
    POD,
    SELECTOR,
    SNAPSHOT,
    TOUCH,
    difference,
    explained_by,
    patched,
)

if TYPE_CHECKING:
    from tests.conformance.cases import Tree


# -- what Go's types do -----------------------------------------------------------------------------------------------

OFF = runtime(replicated_job(containers=[container(stdin=False, envFrom=[{"configMapRef": {}}])]))


@pytest.mark.parametrize(
    "known",
    [
        difference(JOBSET, f"{CONTAINER}.stdin", ABSENT, False, on=OFF),
        difference(JOBSET, f"{OWNED}.f:stdin", ABSENT, {}, on=OFF),
        difference(SNAPSHOT, f"data.runtime.spec.template.{CONTAINER}.stdin", ABSENT, False, on=OFF),
        difference(
            SNAPSHOT, f"data.runtime.spec.template.{CONTAINER}.envFrom[0].configMapRef.name", ABSENT, "", on=OFF
        ),
        difference(SNAPSHOT, f"data.runtime.spec.template.{POD}.spec.volumes[a].configMap.name", ABSENT, ""),
        difference(SNAPSHOT, f"data.runtime.spec.template.{POD}.spec.volumes[a].projected.sources", None, ABSENT),
        difference(JOBSET, f"{ENV}[A].valueFrom.resourceFieldRef.divisor", "0", ABSENT),
    ],
    ids=str,
)
def test_zeros_that_go_drops_or_adds_are_known(known: Difference) -> None:
    assert explained_by(known) == "go-zero"


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOBSET, f"{CONTAINER}.tty", ABSENT, False, on=OFF),
        difference(JOBSET, f"{OWNED}.f:tty", ABSENT, {}, on=OFF),
        difference(JOBSET, f"{OWNED}.f:image", ABSENT, {}, on=OFF),
        difference(JOBSET, "owned.f:spec.f:suspend", ABSENT, {}, on=OFF, spec={"suspend": False}),
        difference(JOBSET, f"{CONTAINER}.stdin", ABSENT, True, on=OFF),
        difference(JOBSET, f"{CONTAINER}.stdin", False, ABSENT, on=OFF),
        difference(JOBSET, "spec.replicatedJobs[node].template.spec.parallelism", ABSENT, 0, on=OFF),
        difference(JOB, "spec.trainer.numNodes", ABSENT, 0, on=OFF),
        difference(JOBSET, f"{ENV}[A].valueFrom.resourceFieldRef.divisor", "1", ABSENT),
        difference(SNAPSHOT, "data.runtime.spec.mlPolicy", None, ABSENT),
        difference(SNAPSHOT, f"data.runtime.spec.template.{POD}.spec.volumes[a].configMap.name", "a", ""),
        difference(SNAPSHOT, f"data.runtime.spec.template.{POD}.spec.volumes[a].name", ABSENT, ""),
    ],
    ids=str,
)
def test_other_zeros_are_not(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    ("place", "path", "reference", "ours", "known"),
    [
        (JOB, "spec.trainer.resourcesPerNode.requests.cpu", "3", 3, True),
        (JOB, "spec.trainer.resourcesPerNode.limits.nvidia.com/gpu", "1", "1000m", True),
        (SNAPSHOT, f"data.runtime.spec.template.{POD}.spec.volumes[a].emptyDir.sizeLimit", "1Gi", "1024Mi", True),
        (JOBSET, f"{CONTAINER}.resources.requests.cpu", "3", 3, False),
        (JOBSET, f"{POD}.spec.volumes[a].emptyDir.sizeLimit", "1Gi", "1024Mi", False),
        (JOB, "spec.trainer.resourcesPerNode.requests.cpu", "3", 4, False),
        (JOB, "spec.trainer.resourcesPerNode.requests.cpu", 3, "3", False),
        (JOB, "spec.trainer.resourcesPerNode.requests.cpu", "3", ABSENT, False),
        (JOB, "spec.trainer.numNodes", "3", 3, False),
    ],
)
def test_amounts_stay_as_written_in_documents_alone(
    place: str, path: str, reference: Any, ours: Any, known: bool
) -> None:
    assert explained_by(difference(place, path, reference, ours)) == ("amounts-as-written" if known else None)


IMMUTABLE = "spec.trainer: Invalid value: field is immutable\nspec.runtimePatches: cannot change while it runs"


@pytest.mark.parametrize(
    ("amount", "change", "codes", "known"),
    [
        (3, SELECTOR, (422, 200), True),
        ("1000m", SELECTOR, (422, 200), True),
        (3, SELECTOR, (422, 403), True),
        ("3", SELECTOR, (422, 200), False),
        (3, SELECTOR, (200, 422), False),
        (3, Change({"spec": {"trainer": {"image": "other"}}}), (422, 200), False),
    ],
)
def test_a_patch_that_rewrites_no_amount_must_be_accepted_by_both(
    amount: Any, change: Change, codes: tuple[int, int], known: bool
) -> None:
    spec = {"trainer": {"resourcesPerNode": {"requests": {"cpu": amount}}}}
    found = difference("verdict", "code", *codes, spec=spec, then=(change,), message=IMMUTABLE)
    assert explained_by(found) == ("patched-as-written" if known else None)


# -- merging ----------------------------------------------------------------------------------------------------------

SIDE = "spec.replicatedJobs[node].template.spec.template.spec.containers[side].env[A]"
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
MOUNTED = runtime(
    replicated_job(
        containers=[container(), container("side", env=[{"name": "A", "value": "a"}])],
        volumes=[{"name": "v", "hostPath": {"path": "/v"}}],
    )
)
VOLUME = f"{POD}.spec.volumes[v]"
REPLACES = {
    "runtimePatches": [
        patch(
            "x.example.com/m",
            patch_job(
                volumes=[{"name": "v", "emptyDir": {}}],
                containers=[{"name": "side", "env": [{"name": "A", "valueFrom": FIELD}]}],
            ),
        )
    ]
}


@pytest.mark.parametrize(
    ("path", "spec", "by"),
    [
        (f"{VOLUME}.hostPath", REPLACES, "volume-replaced"),
        (f"{VOLUME}.hostPath", {}, None),
        (f"{VOLUME}.emptyDir", REPLACES, None),
        (f"{POD}.spec.volumes[w].hostPath", REPLACES, None),
        (f"{SIDE}.value", REPLACES, "variable-replaced"),
        (f"{SIDE}.value", {}, None),
        (f"{SIDE}.valueFrom", REPLACES, None),
        (f"{SIDE.replace('[A]', '[B]')}.value", REPLACES, None),
    ],
)
def test_what_was_replaced_is_known_by_who_replaced_it(path: str, spec: Tree, by: str | None) -> None:
    assert explained_by(difference(JOBSET, path, "kept", ABSENT, spec=spec, on=MOUNTED)) == by


FLAVOR = (patched(patch(KUEUE, patch_job(tolerations=[{"key": "flavor"}]))),)
TOLERANT = runtime(replicated_job(tolerations=[{"key": "runtime"}]))


@pytest.mark.parametrize(
    ("ours", "then", "known"),
    [
        (["runtime", "flavor"], FLAVOR, True),
        (["runtime", "flavor"], (TOUCH,), False),
        (["other", "flavor"], FLAVOR, False),
        (["runtime"], FLAVOR, False),
    ],
)
def test_tolerations_that_stay_beside_kueues_were_given(ours: list[str], then: tuple[Step, ...], known: bool) -> None:
    keys = [{"key": key} for key in ours]
    found = difference(JOBSET, f"{POD}.spec.tolerations", [{"key": "flavor"}], keys, on=TOLERANT, then=then)
    assert explained_by(found) == ("kueue-adds-tolerations" if known else None)


# -- Kueue ------------------------------------------------------------------------------------------------------------

RESOURCES = "spec.trainer.resourcesPerNode"
GPUS = replicated_job(containers=[container(resources={"limits": {"nvidia.com/gpu": "2"}})])
COUNTED = {"runtimePatches": [patch(KUEUE)], "trainer": {"resourcesPerNode": {"requests": {"cpu": "4"}}}}


@pytest.mark.parametrize(
    ("path", "sides", "spec", "on", "known"),
    [
        ("limits", (ABSENT, {"nvidia.com/gpu": "2"}), COUNTED, torch(GPUS), True),
        ("limits.nvidia.com/gpu", (ABSENT, "2"), COUNTED, torch(GPUS), True),
        ("requests", ({"cpu": "4"}, ABSENT), COUNTED, runtime(GPUS), False),
        ("requests", ({"cpu": "4"}, ABSENT), COUNTED, torch(GPUS), False),
        ("limits.nvidia.com/gpu", ("4", "2"), COUNTED, torch(GPUS), False),
        ("limits.nvidia.com/gpu", (ABSENT, "2"), {}, torch(GPUS), False),
        ("limits.nvidia.com/gpu", (ABSENT, "3"), COUNTED, torch(GPUS), False),
        ("limits", (ABSENT, {"cpu": "2"}), COUNTED, torch(GPUS), False),
    ],
)
def test_what_kueue_counts_is_what_the_nodes_will_have(
    path: str, sides: tuple[Any, Any], spec: Tree, on: Tree, known: bool
) -> None:
    found = difference(JOB, f"{RESOURCES}.{path}", *sides, spec=spec, on=on)
    assert explained_by(found) == ("kueue-counts-all" if known else None)


CHEAP, PREMIUM = (
    patch(manager, patch_job(nodeSelector={"tier": tier}))
    for manager, tier in ((KUEUE, "cheap"), ("x.example.com/x", "premium"))
)
TIER = f"{POD}.spec.nodeSelector.tier"
BEHIND, BEFORE = (patched(*entries) for entries in ((CHEAP, PREMIUM), (PREMIUM, CHEAP)))
EMPTY = {"suspend": True, "runtimePatches": [patch(KUEUE)]}
ENTRIES = "spec.runtimePatches"


@pytest.mark.parametrize(
    ("known", "by"),
    [
        (difference(JOBSET, TIER, "premium", "cheap", spec=EMPTY, then=(BEHIND,)), "kueue-last"),
        (difference(JOBSET, TIER, "cheap", "premium", spec=EMPTY, then=(BEHIND,)), None),
        (difference(JOBSET, TIER, "premium", "cheap", spec=EMPTY, then=(BEFORE,)), None),
        (difference(JOBSET, f"{CONTAINER}.image", "premium", "cheap", spec=EMPTY, then=(BEHIND,)), None),
        (difference(JOB, ENTRIES, [PREMIUM], [PREMIUM, CHEAP], spec=EMPTY, then=(patched(PREMIUM),)), "kueues-own"),
        (difference(JOB, ENTRIES, [PREMIUM], [PREMIUM, CHEAP], spec={"runtimePatches": [PREMIUM]}), None),
        (difference(JOB, ENTRIES, [CHEAP], ABSENT, spec={"runtimePatches": [CHEAP]}), "kueues-own"),
        (difference(JOBSET, TIER, "cheap", ABSENT, spec={"runtimePatches": [CHEAP]}), "kueues-own"),
        (difference(JOBSET, TIER, "cheap", ABSENT, spec={"runtimePatches": [PREMIUM]}), None),
        (difference("verdict", "warned", 0, 1, spec={"runtimePatches": [PREMIUM]}), None),
    ],
    ids=str,
)
def test_what_is_kueues_is_known(known: Difference, by: str | None) -> None:
    assert explained_by(known) == by


ASKED = {"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}}}
TWO_GPUS = torch(
    replicated_job(containers=[container(resources={kind: {"nvidia.com/gpu": "2"} for kind in ("requests", "limits")})])
)
RESOURCES_OF_NODE = f"{CONTAINER}.resources"
REQUEST = f"{RESOURCES_OF_NODE}.requests.nvidia.com/gpu"
GIVEN = {"nvidia.com/gpu": "4"}


@pytest.mark.parametrize(
    ("known", "by"),
    [
        (difference(JOBSET, REQUEST, "2", "4", spec=ASKED, on=TWO_GPUS), "equal-sides"),
        (difference(JOBSET, REQUEST, "2", "5", spec=ASKED, on=TWO_GPUS), None),
        (difference(JOBSET, REQUEST, "3", "4", spec=ASKED, on=TWO_GPUS), None),
        (difference(JOBSET, REQUEST, "2", "4", spec=ASKED), None),
        (difference(JOBSET, f"{RESOURCES_OF_NODE}.requests.cpu", "2", "4", spec=ASKED, on=TWO_GPUS), None),
        (
            difference(JOBSET, RESOURCES_OF_NODE, ABSENT, {"limits": GIVEN}, spec=ASKED, on=runtime()),
            "resources-without-policy",
        ),
        (difference(JOBSET, RESOURCES_OF_NODE, ABSENT, {"requests": GIVEN}, spec=ASKED, on=runtime()), None),
        (difference(JOBSET, RESOURCES_OF_NODE, ABSENT, {"limits": GIVEN}, spec=ASKED), None),
        (difference(JOBSET, RESOURCES_OF_NODE, ABSENT, {"limits": GIVEN}, on=runtime()), None),
    ],
    ids=str,
)
def test_resources_that_reach_pods_are_known(known: Difference, by: str | None) -> None:
    assert explained_by(known) == by


@pytest.mark.parametrize(("reference", "known"), [("4", True), ("4000m", False), ("3", False)])
def test_a_runtimes_amount_is_compared_as_the_api_server_writes_it(reference: str, known: bool) -> None:
    on = runtime(replicated_job(containers=[container(resources={"limits": {"example.com/nic": "4000m"}})]))
    path = "spec.replicatedJobs[node].template.spec.template.spec.containers[node].resources.limits.example.com/nic"
    spec = {"trainer": {"resourcesPerNode": {"limits": {"example.com/nic": 2}}}}
    found = difference("JobSet job", path, reference, "2", on=on, spec=spec)
    assert explained_by(found) == ("resources-without-policy" if known else None)
