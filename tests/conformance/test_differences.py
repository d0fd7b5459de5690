"""Declared differences: each is known by its cause, and none hides a fault that stands in its place."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Change, Remove
from tests.conformance.compare import ABSENT, Difference
from tests.conformance.differences import DECLARED, explain
from tests.conformance.documents import (
    COMPLETED,
    FAILED,
    reported,
    torch,
)
from tests.conformance.planted import (
    ENV,
    JOB,
    JOBSET,
    POD,
    SNAPSHOT,
    TOUCH,
    difference,
    explained_by,
)

PET = {"name": "PET_NNODES", "value": "1"}
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
        difference(JOB, "status.restarts", ABSENT, 0),
        difference(JOB, "status.restarts", ABSENT, "1"),
        difference(JOB, "status.restarts", 1, 2),
        difference("verdict", "code", 200, 422, message="spec: immutable", then=(TOUCH,)),
        difference("verdict", "code", 201, 403, message="spec.trainer.image: no"),
        difference("verdict", "code", 403, 201, message="spec.trainer.env: reserved"),
        difference("verdict", "code", 403, 422, message="spec.trainer.env: reserved"),
        difference("verdict", "fields", ["spec.trainer"], ["spec.initializer"]),
        difference("verdict", "fields", ["spec.train"], ["spec.trainer"]),
        difference("verdict", "fields", ["spec.a", "spec.b"], ["spec.a"]),
        difference("verdict", "warned", 1, 0),
        difference("verdict", "warned", 0, 1),
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
        (difference(JOB, "status.restarts", ABSENT, 1), "added-status"),
        (difference(JOB, "status.restartsCountTowardsMax", ABSENT, 2), "added-status"),
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
        (difference(SNAPSHOT, "data.runtime.metadata.generation", 2, 1, then=LOSES), "snapshot-restored"),
        (difference(SNAPSHOT, "data.runtime.metadata.generation", 2, 1, then=LOSES[1:]), None),
        (difference(SNAPSHOT, "data.runtime.metadata.generation", 2, 1, then=(*LOSES[1:2], *LOSES[:1])), None),
        (difference(SNAPSHOT, "", {"kind": "ConfigMap"}, ABSENT, then=LOSES), "snapshot-restored"),
        (difference(SNAPSHOT, "metadata.labels", ABSENT, {"a": "b"}, then=LOSES), None),
        (difference(JOBSET, "", {"kind": "JobSet"}, ABSENT, then=LOSES), "snapshot-restored"),
        (difference(JOB, "status.conditions", [], [LOST], then=LOSES), "snapshot-restored"),
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
