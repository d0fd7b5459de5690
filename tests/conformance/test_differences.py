"""Declared differences: each is known by its cause, and none hides a fault that stands in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.cases import Change, Remove, Step
from tests.conformance.compare import ABSENT, Difference, tree_differences
from tests.conformance.differences import DECLARED, explain
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    container,
    counts,
    patch,
    patch_job,
    replicated_job,
    reported,
    runtime,
    torch,
)
from tests.conformance.planted import (
    CONTAINER,
    ENV,
    JOB,
    JOBSET,
    OWNED,
    OWNED_POD,
    POD,
    SNAPSHOT,
    difference,
    explained_by,
)

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

KUEUE = "kueue.x-k8s.io/manager"
PET = {"name": "PET_NNODES", "value": "1"}
TOUCH = Change({"metadata": {"labels": {"a": "b"}}})
DIGEST = f"sha256:{'0' * 64}"
FAILS, COMPLETES = (reported(conditions=(end,)) for end in (FAILED, COMPLETED))
EXPIRING = torch(ttlSecondsAfterFinished=60)
LOST = {"type": "Failed", "status": "True", "reason": "RuntimeSnapshotMissing"}
LOSES = (Change({"spec": {}}, "TrainingRuntime", "runtime"), Remove("ConfigMap", "job-runtime-snapshot"), TOUCH)
TAKEN = {"kind": "Secret", "metadata": {"name": "job-mpi-ssh-auth"}}
CLAIM = {"initializer": {"dataset": {"storageUri": "pvc://data/x"}}}
FETCH = POD.replace("[node]", "[dataset-initializer]")
FETCHED = f"{FETCH}.spec.containers[dataset-initializer].volumeMounts"
CLAIM_MOUNT = {"name": "trainplane-claim", "mountPath": "/pvc/data", "readOnly": True}
CLAIM_VOLUME = {"name": "trainplane-claim", "persistentVolumeClaim": {"claimName": "data"}}
EDIT_SNAPSHOT = Change({"data": {"runtime": "{"}}, "ConfigMap", "job-runtime-snapshot")


def patched(*entries: Tree, **spec: Any) -> Change:
    return Change({"spec": {"runtimePatches": list(entries), **spec}})


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOBSET, ENV, ABSENT, [PET], spec={"trainer": {}}),
        difference(JOBSET, ENV, ABSENT, [PET, {"name": "A"}]),
        difference(JOBSET, f"{ENV}[A].value", "2", "3"),
        difference(JOBSET, f"{ENV}[A].value", "2", "auto"),
        difference(JOBSET, "spec.replicatedJobs[node].template.spec.parallelism", 2, 3),
        difference(JOBSET, "metadata.generation", 1, 2),
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT),
        difference(JOBSET, "", ABSENT, {"kind": "JobSet"}),
        difference(JOBSET, f"{POD}.spec.hostNetwork", False, ABSENT),
        difference(JOB, "spec.trainer.image", "a", "b"),
        difference(JOB, "status.conditions", [], [{"type": "Failed", "status": "True", "reason": "x"}]),
        difference(JOB, "status.conditions[Suspended].reason", "Suspended", "Resumed"),
        difference(JOB, "status.conditions[Complete].message", "jobset completed successfully", "done"),
        difference(SNAPSHOT, "data.runtime.kind", "TrainingRuntime", "Other"),
        difference(SNAPSHOT, "", {"kind": "ConfigMap"}, ABSENT),
        difference(SNAPSHOT, "immutable", ABSENT, False),
        difference(SNAPSHOT, "immutable", True, ABSENT),
        difference("ConfigMap other", "immutable", ABSENT, True),
        difference(JOB, "status.runtimeDigest", ABSENT, "sha256:1"),
        difference(JOB, "status.runtimeDigest", DIGEST, ABSENT),
        difference(JOB, "status", ABSENT, {"runtimeDigest": DIGEST, "conditions": []}),
        difference(JOB, "status", ABSENT, {}),
        difference(JOB, "status.phase", ABSENT, "Complete"),
        difference(JOB, "status.phase", "Running", "Failed"),
        difference(JOB, "status.nodesReady", ABSENT, "2"),
        difference(JOB, "status.firstFault", ABSENT, {"cause": "PythonError"}),
        difference(JOB, "status.timeline", ABSENT, [{"stage": "Running"}]),
        difference(JOB, "status.timeline", ABSENT, "Running"),
        difference("verdict", "code", 200, 422, message="spec: immutable", then=(TOUCH,)),
        difference("verdict", "code", 201, 403, message="spec.trainer.image: no"),
        difference("verdict", "code", 403, 201, message="spec.trainer.env: reserved"),
        difference("verdict", "code", 403, 422, message="spec.trainer.env: reserved"),
        difference("verdict", "fields", ["spec.trainer"], ["spec.initializer"]),
        difference("verdict", "fields", ["spec.train"], ["spec.trainer"]),
        difference("verdict", "fields", ["spec.a", "spec.b"], ["spec.a"]),
        difference("verdict", "warned", True, False),
        difference("verdict", "warned", False, True),
        difference(JOBSET, FETCHED, [PET], [PET, CLAIM_MOUNT]),
        difference(JOBSET, FETCHED, [PET], [CLAIM_MOUNT], spec=CLAIM),
        difference(JOBSET, FETCHED, ABSENT, [{**CLAIM_MOUNT, "readOnly": False}], spec=CLAIM),
        difference(JOBSET, f"{POD}.spec.volumes", ABSENT, [CLAIM_VOLUME], spec=CLAIM),
        difference(
            JOBSET,
            f"{FETCH}.spec.volumes",
            ABSENT,
            [{**CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": "a"}}],
            spec=CLAIM,
        ),
    ],
    ids=str,
)
def test_nothing_explains_a_fault(planted: Difference) -> None:
    assert explain(planted) is None


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (difference(SNAPSHOT, "immutable", ABSENT, True), "snapshot-immutable"),
        (difference(JOBSET, FETCHED, [PET], [PET, CLAIM_MOUNT], spec=CLAIM), "claim-mounted"),
        (difference(JOBSET, f"{FETCH}.spec.volumes", ABSENT, [CLAIM_VOLUME], spec=CLAIM), "claim-mounted"),
        (
            difference("verdict", "code", 200, 422, message="data: is immutable", then=(EDIT_SNAPSHOT,)),
            "snapshot-immutable",
        ),
        (difference(JOB, "status.runtimeDigest", ABSENT, DIGEST), "added-status"),
        (difference(JOB, "status.phase", ABSENT, "Running"), "added-status"),
        (difference(JOB, "status.nodesReady", ABSENT, "1/2"), "added-status"),
        (
            difference(JOB, "status.timeline", ABSENT, [{"stage": "Failed", "time": "2026-01-01T00:00:00Z"}]),
            "added-status",
        ),
        (difference(JOB, "status", ABSENT, {"runtimeDigest": DIGEST, "phase": "Queued"}), "added-status"),
        (difference(JOBSET, "spec.ttlSecondsAfterFinished", 60, ABSENT, on=EXPIRING), "ttl-when-told"),
        (difference(JOBSET, "owned.f:spec.f:ttlSecondsAfterFinished", {}, ABSENT, on=EXPIRING), "ttl-when-told"),
        (difference(JOBSET, "metadata.generation", 1, 2, on=EXPIRING, then=(COMPLETES,)), "ttl-when-told"),
        (difference(JOBSET, "spec.ttlSecondsAfterFinished", 60, ABSENT, on=EXPIRING, then=(COMPLETES,)), None),
        (difference(JOBSET, "spec.ttlSecondsAfterFinished", 60, 61, on=EXPIRING), None),
        (difference(JOBSET, "spec.ttlSecondsAfterFinished", 60, ABSENT), None),
        (difference(JOBSET, "metadata.generation", 1, 2, on=EXPIRING), None),
        (difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=LOSES), "snapshot-unwatched"),
        (difference(JOB, "status.conditions", [], [LOST], then=LOSES), "snapshot-unwatched"),
        (difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=LOSES[1:]), None),
        (difference(JOB, "status.conditions", [], [LOST], then=LOSES[1:]), None),
        (difference(JOB, "status.conditions", [], [{**LOST, "reason": "x"}], then=LOSES), None),
        (difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, on=TAKEN), "foreign-keys"),
        (difference(JOBSET, "spec.suspend", True, False, on=TAKEN), None),
    ],
    ids=str,
)
def test_what_the_controller_keeps_back_or_adds_is_known(found: Difference, by: str | None) -> None:
    assert explained_by(found) == by


def test_declared_differences_have_ids_and_reasons() -> None:
    assert len({declared.id for declared in DECLARED}) == len(DECLARED)
    assert all(declared.what and declared.reason for declared in DECLARED)


# -- an end that is final ---------------------------------------------------------------------------------------------

SUSPEND, RESUME = (Change({"spec": {"suspend": value}}) for value in (True, False))
REMOVE = Remove("JobSet")
SELECTOR = patched(patch(KUEUE, patch_job(nodeSelector={"a": "b"})))


def held(kind: str, status: str = "True") -> Tree:
    return {"type": kind, "status": status, "reason": kind}


@pytest.mark.parametrize(
    "known",
    [
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(FAILS, REMOVE)),
        difference(JOBSET, "spec.suspend", True, False, then=(FAILS, SUSPEND)),
        difference(JOBSET, "metadata.generation", 2, 1, then=(FAILS, SUSPEND)),
        difference(JOBSET, f"{POD}.spec.nodeSelector.a", "b", ABSENT, then=(FAILS, SELECTOR)),
        difference(JOBSET, f"{OWNED_POD}.f:spec.f:nodeSelector", {}, ABSENT, then=(FAILS, SELECTOR)),
        difference(JOBSET, "metadata.labels.a", "b", "c", then=(FAILS, SELECTOR)),
        difference(JOB, "status.jobsStatus", ABSENT, [{"name": "node"}], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", ABSENT, [held("Failed")], then=(FAILS, REMOVE)),
        difference(JOB, "status", ABSENT, {"conditions": [held("Failed")], "jobsStatus": []}, then=(FAILS, REMOVE)),
        difference(
            JOB, "status.conditions", [held("Suspended")], [held("Suspended"), held("Failed")], then=(FAILS, REMOVE)
        ),
    ],
    ids=str,
)
def test_a_failure_that_is_final_is_known(known: Difference) -> None:
    assert explained_by(known) == "failed-is-final"


NO_COUNTS = [{"name": "node", "active": 0, "suspended": 1}]


@pytest.mark.parametrize(
    "known",
    [
        difference(JOB, "status.jobsStatus", NO_COUNTS, ABSENT, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus[node].suspended", 1, 0, then=(RESUME, SUSPEND)),
    ],
    ids=str,
)
def test_suspended_jobs_of_a_job_that_is_held_back_are_known(known: Difference) -> None:
    assert explained_by(known) == "held-counts"


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOB, "status.jobsStatus", NO_COUNTS, ABSENT, then=(SUSPEND, RESUME)),
        difference(JOB, "status.jobsStatus", [{"name": "node", "active": 1}], ABSENT, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus[node].active", 1, 0, then=(SUSPEND,)),
        difference(JOB, "status.jobsStatus", ABSENT, NO_COUNTS, then=(SUSPEND,)),
    ],
    ids=str,
)
def test_other_counts_are_no_such_difference(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    "planted",
    [
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(FAILS, SUSPEND)),
        difference(JOBSET, "", ABSENT, {"kind": "JobSet"}, then=(FAILS, REMOVE)),
        difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=(COMPLETES, REMOVE)),
        difference(JOBSET, "spec.suspend", True, False, then=(COMPLETES, SUSPEND)),
        difference(JOBSET, "spec.suspend", True, False, then=(SUSPEND, FAILS)),
        difference(JOBSET, "spec.suspend", True, False, then=(FAILS, FAILS)),
        difference(JOBSET, f"{CONTAINER}.image", "a", "b", then=(FAILS, SELECTOR)),
        difference(JOBSET, "spec.replicatedJobs[node].template.metadata.labels.a", "a", "b", then=(FAILS, SELECTOR)),
        difference(JOBSET, "status.conditions", [], ABSENT, then=(FAILS, SUSPEND)),
        difference(JOB, "status.jobsStatus", [{"name": "node"}], ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status.jobsStatus", ABSENT, [{"name": "node"}], then=(FAILS, SUSPEND)),
        difference(JOB, "status.conditions", [held("Failed")], ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status", ABSENT, {"conditions": [held("Complete")]}, then=(FAILS, REMOVE)),
        difference(JOB, "status", {"conditions": [held("Failed")]}, ABSENT, then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", [], [held("Failed"), held("Complete")], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions", [held("Complete")], [held("Failed")], then=(FAILS, REMOVE)),
        difference(JOB, "status.conditions[Failed].reason", "a", "b", then=(FAILS, SUSPEND)),
        difference(JOB, "spec.suspend", True, False, then=(FAILS, SUSPEND)),
    ],
    ids=str,
)
def test_a_failure_explains_nothing_else(planted: Difference) -> None:
    assert explained_by(planted) is None


@pytest.mark.parametrize(
    ("path", "reference", "ours", "known"),
    [
        ("status.conditions", [held("Suspended"), held("Complete")], [held("Complete")], True),
        ("status.conditions[Suspended].status", "True", "False", True),
        ("status.conditions[Suspended].reason", "Suspended", "Resumed", True),
        ("status.conditions", [held("Complete")], [held("Suspended"), held("Complete")], False),
        ("status.conditions", [held("Suspended"), held("Complete")], [], False),
        ("status.conditions", [held("Suspended"), held("Complete")], [held("Failed")], False),
        ("status.conditions[Complete].status", "True", "False", False),
        ("status.conditions[Suspended].reason", "Suspended", "Other", False),
        ("status.conditions[Suspended].status", "True", ABSENT, False),
    ],
)
def test_a_job_that_ended_is_not_suspended(path: str, reference: Any, ours: Any, known: bool) -> None:
    found = difference(JOB, path, reference, ours, then=(COMPLETES, SUSPEND))
    assert (explained_by(found) == "ended-is-not-suspended") is known
    if not known:
        assert explained_by(found) is None


RUNS, WAITS = (reported(counts(ready=ready)) for ready in (1, 0))
RESUMED = {"type": "Suspended", "status": "False", "reason": "Resumed"}


@pytest.mark.parametrize(
    ("then", "spec", "sides", "known"),
    [
        ((RESUME, RUNS), {}, ([RESUMED], ABSENT), True),
        ((RESUME, WAITS), {}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS, WAITS), {}, ([RESUMED], ABSENT), False),
        ((RESUME,), {}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS), {"activeDeadlineSeconds": 9}, ([RESUMED], ABSENT), False),
        ((RESUME, RUNS), {}, (ABSENT, [RESUMED]), False),
        ((RESUME, RUNS), {}, ([held("Suspended")], ABSENT), False),
        ((RESUME, RUNS), {}, ([RESUMED], [held("Suspended")]), False),
    ],
)
def test_a_job_that_runs_has_no_condition(
    then: tuple[Step, ...], spec: Tree, sides: tuple[Any, Any], known: bool
) -> None:
    found = difference(JOB, "status.conditions", *sides, spec=spec, then=then)
    assert explained_by(found) == ("runs-unconditionally" if known else None)


# -- metadata that is taken back --------------------------------------------------------------------------------------

LABELLED = patch(KUEUE, patch_job(pod_metadata={"labels": {"q": "1"}}, nodeSelector={"pool": "a"}))
BARE = patch(KUEUE, patch_job(nodeSelector={"pool": "a"}))
WITH_LABELS = runtime(replicated_job())
WITH_LABELS["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"] = {
    "labels": {"of": "the-runtime"}
}


def selector(*then: Step, on: Tree | None = None, path: str = f"{POD}.spec.nodeSelector.pool") -> Difference:
    spec = {"suspend": True, "runtimePatches": [patch(KUEUE)]}
    return difference(JOBSET, path, "a", ABSENT, spec=spec, on=on or runtime(), then=(patched(LABELLED), *then))


@pytest.mark.parametrize("path", [f"{POD}.spec.nodeSelector.pool", f"{POD}.metadata", "metadata.generation"])
@pytest.mark.parametrize("then", [(patched(),), (patched(BARE),), (patched(), TOUCH)])
def test_metadata_that_is_taken_back_is_known(then: tuple[Step, ...], path: str) -> None:
    assert explained_by(selector(*then, path=path)) == "emptied-metadata"


@pytest.mark.parametrize(
    "planted",
    [
        selector(patched(LABELLED)),
        selector(TOUCH),
        selector(patched(), patched(LABELLED)),
        selector(patched(), on=WITH_LABELS),
        selector(patched(), path=f"{CONTAINER}.image"),
        selector(patched(), path="spec.replicatedJobs[node].template.spec.parallelism"),
        selector(patched(), path="status.restarts"),
    ],
    ids=["still there", "never taken", "given again", "the runtime has some", "an image", "a count", "a status"],
)
def test_metadata_that_is_not_taken_back_explains_nothing(planted: Difference) -> None:
    assert explained_by(planted) is None


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


# -- Torch ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "ours", "known"),
    [
        (f'{OWNED}.f:env.k:{{"name":"PET_NNODES"}}', {".": {}}, True),
        (f"{OWNED}.f:env", {'k:{"name":"PET_NNODES"}': {".": {}}}, True),
        (f'{OWNED}.f:ports.k:{{"containerPort":29500,"protocol":"TCP"}}', {".": {}}, True),
        (f'{OWNED}.f:env.k:{{"name":"A"}}', {".": {}}, False),
        (f"{OWNED}.f:env", {'k:{"name":"PET_NNODES"}': {}, 'k:{"name":"A"}': {}}, False),
        (f'{OWNED}.f:ports.k:{{"containerPort":80,"protocol":"TCP"}}', {".": {}}, False),
    ],
)
def test_only_torchs_own_fields_are_ours_alone(path: str, ours: Any, known: bool) -> None:
    assert explained_by(difference(JOBSET, path, ABSENT, ours)) == ("torch-without-trainer" if known else None)


MASTER = {"name": "MASTER_ADDR", "value": "job-node-0-0.job"}
OWNED_MASTER = f'{OWNED}.f:env.k:{{"name":"MASTER_ADDR"}}'
PLAIN = runtime(replicated_job(), policy={"numNodes": 1})
SAYS_COMMAND = torch(replicated_job(containers=[container(command=["python3"])]))
GIVES_ARGS = {"trainer": {"args": ["train.py"]}}


@pytest.mark.parametrize(
    ("path", "ours", "on", "known"),
    [
        (f"{ENV}[MASTER_ADDR]", MASTER, None, True),
        (f"{ENV}[MASTER_PORT]", {"name": "MASTER_PORT", "value": "29500"}, None, True),
        (OWNED_MASTER, {".": {}, "f:value": {}}, None, True),
        (f"{ENV}[MASTER_ADDR]", {**MASTER, "value": "job-node-0-1.job"}, None, False),
        (f"{ENV}[MASTER_PORT]", {"name": "MASTER_PORT", "value": "1"}, None, False),
        (f"{ENV}[MASTER]", MASTER, None, False),
        (f"{ENV}[MASTER_ADDR]", MASTER, PLAIN, False),
        (OWNED_MASTER, {".": {}, "f:value": {}}, PLAIN, False),
        (f"{ENV.replace('[node]', '[side]')}[MASTER_ADDR]", MASTER, None, False),
    ],
)
def test_the_first_node_is_known_by_its_address(path: str, ours: Any, on: Tree | None, known: bool) -> None:
    found = difference(JOBSET, path, ABSENT, ours, spec=GIVES_ARGS, on=on)
    assert explained_by(found) == ("master" if known else None)


@pytest.mark.parametrize(
    ("path", "ours", "spec", "on", "known"),
    [
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, None, True),
        (f"{OWNED}.f:command", {}, GIVES_ARGS, None, True),
        (f"{CONTAINER}.command", ["torchrun", "--standalone"], GIVES_ARGS, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {"trainer": {"numNodes": 2}}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {"trainer": {"args": ["a"], "command": ["b"]}}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], {}, None, False),
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, SAYS_COMMAND, False),
        (f"{CONTAINER}.command", ["torchrun"], GIVES_ARGS, PLAIN, False),
        (f"{CONTAINER}.args", ["torchrun"], GIVES_ARGS, None, False),
    ],
)
def test_torchrun_is_a_command_that_nobody_gave(path: str, ours: Any, spec: Tree, on: Tree | None, known: bool) -> None:
    assert explained_by(difference(JOBSET, path, ABSENT, ours, spec=spec, on=on)) == ("torchrun" if known else None)


def test_the_first_nodes_variables_hide_nothing_beside_them() -> None:
    theirs = [{"name": "A", "value": "1"}]
    ours = [{"name": "A", "value": "2"}, MASTER]
    found = tree_differences({"env": theirs}, {"env": ours}, "x")
    assert found == [("x.env[MASTER_ADDR]", ABSENT, MASTER), ("x.env[A].value", "1", "2")]
    assert tree_differences({"env": theirs}, {"env": [*ours, MASTER | {"name": "B"}]}, "x")[1:] == [
        ("x.env", theirs, [ours[0], MASTER | {"name": "B"}])
    ]


@pytest.mark.parametrize(
    ("amounts", "ours", "known"),
    [
        ({"nvidia.com/mig-1g.5gb": 1}, "auto", True),
        ({"google.com/tpu": 4}, "4", True),
        ({"google.com/tpu": 4}, "5", False),
        ({"google.com/tpu": 4}, "auto", False),
        ({"cpu": 4}, "4", False),
    ],
)
def test_processes_follow_what_the_pod_has(amounts: Tree, ours: str, known: bool) -> None:
    spec = {"trainer": {"resourcesPerNode": {"limits": amounts}}}
    found = difference(JOBSET, f"{ENV}[PET_NPROC_PER_NODE].value", "1", ours, spec=spec)
    assert explained_by(found) == ("accelerators" if known else None)


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
        (difference("verdict", "warned", False, True, spec={"runtimePatches": [PREMIUM]}), None),
    ],
    ids=str,
)
def test_what_is_kueues_is_known(known: Difference, by: str | None) -> None:
    assert explained_by(known) == by


ASKED = {"trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": "4"}}}}


@pytest.mark.parametrize(
    ("known", "by"),
    [
        (difference(JOBSET, f"{CONTAINER}.resources.requests.nvidia.com/gpu", "2", "4", spec=ASKED), "equal-sides"),
        (difference(JOBSET, f"{CONTAINER}.resources.requests.nvidia.com/gpu", "2", "5", spec=ASKED, on=torch()), None),
        (difference(JOBSET, f"{CONTAINER}.resources.requests.cpu", "2", "4", spec=ASKED, on=torch()), None),
        (
            difference(JOBSET, f"{CONTAINER}.resources.limits.cpu", ABSENT, "1", spec=ASKED, on=runtime()),
            "resources-without-policy",
        ),
        (difference(JOBSET, f"{CONTAINER}.resources.limits.cpu", ABSENT, "1", spec=ASKED, on=torch()), None),
        (difference(JOBSET, f"{CONTAINER}.resources.limits.cpu", ABSENT, "1", on=runtime()), None),
    ],
    ids=str,
)
def test_resources_that_reach_pods_are_known(known: Difference, by: str | None) -> None:
    assert explained_by(known) == by


RUN = '299 - "spec.trainer.command: neither this TrainJob nor its runtime says what to run"'


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (RUN, "nothing-to-run"),
        ('299 - "this runtime is used by TrainJob a/b"', "runtime-used"),
        (f'{RUN}\n299 - "something else"', None),
        ("", None),
    ],
)
def test_warnings_of_ours_are_known_by_their_words(message: str, known: str | None) -> None:
    assert explained_by(difference("verdict", "warned", reference=False, ours=True, message=message)) == known
