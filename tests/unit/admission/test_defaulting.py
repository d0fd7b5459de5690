"""What is stored: times of patches, today's form, and the letters that are stored already."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, ClassVar

import pytest

from tests.unit.admission.objects import KUEUE, OURS, entry, job_patch, replicated_job, runtime, trainjob, with_spec
from trainplane.admission.defaulting import default_trainjob, leaves_kind_open, settle_kind
from trainplane.admission.jsonpatch import json_patch

NOW = datetime(2026, 3, 4, 5, 6, 7, 890000, tzinfo=UTC)
STAMP = "2026-03-04T05:06:07Z"
EARLIER = "2025-01-01T00:00:00Z"
SENT = "2024-01-01T00:00:00Z"

ME = "example.com/me"
YOU = "example.com/you"
A: dict[str, Any] = {"nodeSelector": {"zone": "a"}}
B: dict[str, Any] = {"nodeSelector": {"zone": "b"}}


def defaulted(new: Any, old: Any = None, **facts: Any) -> Any:
    return default_trainjob(new, old, now=NOW, **facts).tree


def times(new: list[Any], old: list[Any] | None = None) -> list[str | None]:
    stored = None if old is None else trainjob(runtimePatches=old)
    patches = defaulted(trainjob(runtimePatches=new), stored)["spec"]["runtimePatches"]
    return [patch.get("time") for patch in patches]


class TestKind:
    OPEN: ClassVar[dict[str, Any]] = {"trainplane.dev/runtime-kind": "any"}

    def job(self, **annotations: str) -> Any:
        job = trainjob()
        job["metadata"]["annotations"] = annotations
        return job

    @pytest.mark.parametrize(("own", "kind"), [(True, "TrainingRuntime"), (False, "ClusterTrainingRuntime")])
    def test_the_namespaces_goes_first_and_the_mark_goes(self, own: bool, kind: str) -> None:
        job = self.job(**self.OPEN, other="x")
        assert leaves_kind_open(job, None)
        settled = settle_kind(job, in_namespace=own)
        assert settled["spec"]["runtimeRef"]["kind"] == kind
        assert settled["metadata"]["annotations"] == {"other": "x"}
        assert not leaves_kind_open(settled, None)
        assert "annotations" not in settle_kind(self.job(**self.OPEN), in_namespace=own)["metadata"]

    def test_only_of_what_is_new_and_says_so(self) -> None:
        assert not leaves_kind_open(self.job(), None)
        assert not leaves_kind_open(self.job(**{"trainplane.dev/runtime-kind": "mine"}), None)
        assert not leaves_kind_open(self.job(**self.OPEN), trainjob())
        broken = self.job(**self.OPEN)
        broken["spec"]["runtimeRef"] = "torch"
        assert not leaves_kind_open(broken, None)


class TestTimes:
    @pytest.mark.parametrize(
        ("new", "old", "time"),
        [
            pytest.param(entry(ME, **A), None, STAMP, id="created without a time"),
            pytest.param(entry(ME, time=SENT, **A), None, SENT, id="created with a time"),
            pytest.param(entry(ME, **A), entry(ME, time=EARLIER, **A), EARLIER, id="unchanged, time left out"),
            pytest.param(entry(ME, time=SENT, **A), entry(ME, time=EARLIER, **A), EARLIER, id="unchanged, other time"),
            pytest.param(entry(ME, **B), entry(ME, time=EARLIER, **A), STAMP, id="changed"),
            pytest.param(entry(ME, time=SENT, **B), entry(ME, time=EARLIER, **A), STAMP, id="changed, with a time"),
            pytest.param(entry(ME, **A), entry(YOU, time=EARLIER, **A), STAMP, id="new manager"),
            pytest.param(entry(ME, time=SENT, **A), entry(YOU, **A), SENT, id="new manager with a time"),
            pytest.param(entry(ME, time=SENT, **A), entry(ME, **A), None, id="unchanged, stored without a time"),
        ],
    )
    def test_matrix(self, new: Any, old: Any, time: str | None) -> None:
        assert times([new], None if old is None else [old]) == [time]

    def test_only_the_changed_entry_gets_a_new_time(self) -> None:
        old = [entry(ME, time=EARLIER, **A), entry(KUEUE, time=EARLIER)]
        assert times([entry(ME, time=EARLIER, **A), entry(KUEUE, time=EARLIER, **B)], old) == [EARLIER, STAMP]

    def test_entries_are_known_by_their_manager_not_their_place(self) -> None:
        old = [entry(ME, time=EARLIER, **A), entry(KUEUE, time=SENT)]
        assert times([entry(KUEUE), entry(ME, **A)], old) == [SENT, EARLIER]

    def test_kueue_clearing_what_is_clear_changes_nothing(self) -> None:
        old = trainjob(runtimePatches=[entry(KUEUE, time=EARLIER)])
        cleared = {"manager": KUEUE, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": []}}}}
        assert defaulted(trainjob(runtimePatches=[cleared]), old) == old

    def test_the_time_is_utc_in_whole_seconds(self) -> None:
        here = NOW.astimezone(timezone(timedelta(hours=9)))
        new = trainjob(runtimePatches=[entry(ME)])
        assert default_trainjob(new, None, now=here).tree["spec"]["runtimePatches"][0]["time"] == STAMP

    def test_a_null_is_no_time(self) -> None:
        assert times([{**entry(ME), "time": None}]) == [STAMP]

    def test_nothing_else_is_touched(self) -> None:
        new = trainjob(runtimePatches=[entry(ME, **A)], trainer={"numNodes": 2})
        assert json_patch(new, defaulted(new)) == [{"op": "add", "path": "/spec/runtimePatches/0/time", "value": STAMP}]

    def test_a_job_without_patches_needs_no_operation(self) -> None:
        new = trainjob(trainer={"numNodes": 2, "resourcesPerNode": {"requests": {"cpu": "0.5"}}})
        assert json_patch(new, defaulted(new)) == []
        assert json_patch(new, defaulted(new, copy.deepcopy(new))) == []


class TestOlderGenerations:
    def test_all_at_once(self) -> None:
        new = trainjob(
            runtimeRef={"apiGroup": "kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"},
            labels={"a": "1"},
            podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"z": "a"}}}],
            trainer={"numNodes": 2, "numProcPerNode": "auto"},
        )
        result = default_trainjob(new, None, now=NOW, runtime=runtime())
        assert result.tree == trainjob(
            trainer={"numNodes": 2},
            runtimePatches=[
                {
                    "manager": OURS,
                    "time": STAMP,
                    "trainingRuntimeSpec": {
                        "template": {
                            "metadata": {"labels": {"a": "1"}},
                            "spec": {"replicatedJobs": [job_patch("node", nodeSelector={"z": "a"})]},
                        }
                    },
                }
            ],
        )
        assert [warning.partition(" ")[0].rstrip(":") for warning in result.warnings] == [
            "spec.labels",
            "spec.podTemplateOverrides",
            "spec.runtimeRef.apiGroup",
            "spec.trainer.numProcPerNode",
        ]

    def test_applying_the_same_old_file_again_changes_nothing(self) -> None:
        sent = trainjob(
            labels={"a": "1"}, trainer={"numProcPerNode": "gpu", "resourcesPerNode": {"limits": {"gpu": 2}}}
        )
        stored = defaulted(sent, runtime=runtime())
        merged = with_spec(stored, labels={"a": "1"}, trainer=sent["spec"]["trainer"])
        later = default_trainjob(merged, stored, now=NOW + timedelta(days=1), runtime=runtime())
        assert later.tree == stored
        assert len(later.warnings) == 2

    def test_a_job_that_an_older_release_stored_is_turned_at_its_next_write(self) -> None:
        stored = trainjob(labels={"a": "1"}, trainer={"numProcPerNode": "4", "args": []})
        written = default_trainjob(with_spec(stored, suspend=True), stored, now=NOW).tree
        assert written["spec"]["runtimePatches"] == [
            {"manager": OURS, "time": STAMP, "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"a": "1"}}}}}
        ]
        assert written["spec"]["trainer"] == {"numProcPerNode": 4, "args": []}

    def test_the_runtime_counts_where_the_job_is_silent(self) -> None:
        job = replicated_job()
        job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
        new = trainjob(trainer={"numProcPerNode": "gpu"})
        assert defaulted(new, runtime=runtime(job))["spec"]["trainer"] == {"numProcPerNode": 8}


class TestStoredForm:
    """Kueue up to 0.19 writes the whole object back with Go types, and the schema compares letters."""

    STORED = trainjob(
        suspend=True,
        trainer={
            "args": [],
            "env": [{"name": "A", "value": ""}],
            "resourcesPerNode": {"requests": {"cpu": "0.5", "memory": 1073741824}},
        },
        initializer={"dataset": {"storageUri": "", "env": [{"name": "B", "value": ""}]}},
        runtimePatches=[
            entry(
                ME,
                time=EARLIER,
                containers=[{"name": "side", "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}]}],
                terminationGracePeriodSeconds=300,
            ),
            entry(KUEUE, time=EARLIER),
        ],
    )
    WRITTEN = trainjob(
        suspend=False,
        trainer={"env": [{"name": "A"}], "resourcesPerNode": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
        initializer={"dataset": {"storageUri": "", "env": [{"name": "B"}]}},
        runtimePatches=[
            entry(ME, time=EARLIER, containers=[{"name": "side", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
            entry(KUEUE, time=EARLIER, **A),
        ],
    )

    def test_only_what_kueue_means_changes(self) -> None:
        result = default_trainjob(self.WRITTEN, self.STORED, now=NOW)
        assert json_patch(self.STORED, result.tree) == [
            {"op": "replace", "path": "/spec/suspend", "value": False},
            {
                "op": "add",
                "path": "/spec/runtimePatches/1/trainingRuntimeSpec/template/spec/replicatedJobs",
                "value": [job_patch("node", **A)],
            },
            {"op": "replace", "path": "/spec/runtimePatches/1/time", "value": STAMP},
        ]

    def test_a_grace_period_that_a_client_does_not_know_stays(self) -> None:
        (warning,) = default_trainjob(self.WRITTEN, self.STORED, now=NOW).warnings
        assert warning == (
            "spec.runtimePatches: terminationGracePeriodSeconds of job node cannot be taken away and stays 300"
        )

    def test_a_real_change_is_left_for_the_schema_to_refuse(self) -> None:
        new = with_spec(self.STORED, trainer={"args": ["x"]})
        assert defaulted(new, self.STORED)["spec"]["trainer"] == {"args": ["x"]}

    def test_a_part_taken_away_is_not_brought_back(self) -> None:
        new = with_spec(self.STORED, trainer=None, initializer=None)
        assert not {"trainer", "initializer"} & defaulted(new, self.STORED)["spec"].keys()


@pytest.mark.parametrize("spec", [None, [], "text", 1])
def test_a_spec_of_a_wrong_type_is_left_for_the_schema_to_refuse(spec: Any) -> None:
    assert defaulted({"spec": spec}) == {"spec": spec}
    assert defaulted({"spec": spec}, trainjob(runtimePatches=[entry(ME)])) == {"spec": spec}


@pytest.mark.parametrize("patches", ["text", {}, [1], [{"manager": ["list"]}], [{"time": 1}], [None], []])
def test_patches_of_a_wrong_type_are_left_for_the_schema_to_refuse(patches: Any) -> None:
    new = trainjob(runtimePatches=patches)
    assert defaulted(new) == new
    assert defaulted(new, trainjob(runtimePatches=[entry(ME)])) == new
