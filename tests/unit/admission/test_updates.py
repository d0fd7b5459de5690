"""Which edits of a TrainJob are possible, and when."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest

from tests.unit.admission.objects import (
    KUEUE,
    Plain,
    entry,
    replicated_job,
    runtime,
    runtime_tree,
    trainjob,
    with_spec,
)
from trainplane.admission.defaulting import default_trainjob
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.render.findings import Finding, Verdict
from trainplane.render.pipeline import Pipeline

REAL = Pipeline.default()
REFUSES = Plain(Verdict((Finding("spec.runtimeRef", "the runtime is another by now"),)))

A: dict[str, Any] = {"nodeSelector": {"zone": "a"}}
B: dict[str, Any] = {"nodeSelector": {"zone": "b"}}
ALWAYS = object()


def judged(
    new: Any, old: Any, known: Any = ALWAYS, *, jobset: Any = None, pipeline: Any = REAL, source: Any = "live"
) -> Verdict:
    """Judge an update; on a plain torch runtime unless another is given."""
    known = runtime() if known is ALWAYS else known
    return validate_trainjob(
        new, old, runtime=known, runtime_source=source if known else None, jobset=jobset, pipeline=pipeline
    )


def jobset(*active: str, template: Any = None) -> Any:
    """Return a JobSet with some active jobs."""
    counts = [{"name": name, "active": 1 if name in active else 0, "ready": 0} for name in ("node", "launcher")]
    return {**(template or runtime_tree()["spec"]["template"]), "status": {"replicatedJobsStatus": counts}}


class TestWhatIsNeverHeldUp:
    """Whatever became of the runtime, a TrainJob can be suspended, resumed, labelled and deleted."""

    @pytest.mark.parametrize("known", [None, runtime(), runtime(replicated_job("other", None))])
    @pytest.mark.parametrize("suspend", [True, False])
    def test_suspending_and_resuming(self, known: Any, suspend: bool) -> None:
        old = trainjob(suspend=not suspend, runtimePatches=[entry(**A)], trainer={"numNodes": -1})
        new = with_spec(old, suspend=suspend)
        assert judged(new, old, known, pipeline=REFUSES, jobset=jobset("node")) == Verdict()

    def test_labels_and_finalizers(self) -> None:
        old = trainjob("j" * 63, runtimePatches=[entry("no-domain", **A)])
        new = trees.put(old, "metadata", "labels", value={"a": "b"})
        assert judged(new, old, None, pipeline=REFUSES) == Verdict()

    def test_a_job_that_is_being_deleted(self) -> None:
        old = trainjob(runtimePatches=[entry(**A)])
        new = trees.put(
            with_spec(old, runtimePatches=[], trainer={}), "metadata", "deletionTimestamp", value="2026-01-01T00:00:00Z"
        )
        assert judged(new, old, None, pipeline=REFUSES) == Verdict()

    def test_a_warning_of_deprecation_is_still_shown(self) -> None:
        known = runtime().put("metadata", "labels", value={names.LABEL_SUPPORT: names.SUPPORT_DEPRECATED})
        assert len(judged(trainjob(suspend=True), trainjob(), known).warnings) == 1

    def test_names_and_managers_that_are_stored_already(self) -> None:
        old = trainjob("j" * 63, suspend=True, runtimePatches=[entry("no-domain", **A)])
        new = with_spec(old, runtimePatches=[entry("no-domain", **B)])
        assert judged(new, old) == Verdict()


class TestFixedFields:
    FIELDS: ClassVar[Any] = (
        ("trainer", {"numNodes": 2}),
        ("initializer", {"model": {}}),
        ("activeDeadlineSeconds", 60),
    )

    @pytest.mark.parametrize(("field", "value"), FIELDS)
    def test_added(self, field: str, value: Any) -> None:
        verdict = judged(trainjob(**{field: value}), trainjob(), pipeline=Plain())
        assert verdict.errors == (
            Finding(
                f"spec.{field}",
                "cannot be added once the TrainJob exists: create another TrainJob instead",
                "Forbidden",
            ),
        )

    @pytest.mark.parametrize(("field", "value"), FIELDS)
    def test_removed(self, field: str, value: Any) -> None:
        verdict = judged(trainjob(), trainjob(**{field: value}), pipeline=Plain())
        assert verdict.errors == (
            Finding(
                f"spec.{field}",
                "cannot be removed once the TrainJob exists: create another TrainJob instead",
                "Forbidden",
            ),
        )

    def test_an_empty_trainer_counts_since_frameworks_look_for_it(self) -> None:
        assert not judged(trainjob(trainer={}), trainjob(), pipeline=Plain()).allowed

    def test_a_null_is_not_there(self) -> None:
        assert judged(trainjob(trainer=None, suspend=True), trainjob(), pipeline=Plain()).allowed


class TestMoment:
    RUNS = Finding(
        "spec.runtimePatches",
        "cannot change while the TrainJob runs: set spec.suspend to true, in the same update if you like",
        "Forbidden",
    )

    @pytest.mark.parametrize(
        ("before", "after", "active", "errors"),
        [
            (False, False, (), (RUNS,)),
            (False, False, ("node",), (RUNS,)),
            (True, True, (), ()),
            (True, False, (), ()),
            (False, True, (), ()),
        ],
    )
    def test_suspended_before_or_after(self, before: bool, after: bool, active: Any, errors: Any) -> None:
        old = trainjob(suspend=before, runtimePatches=[entry(**A)])
        new = with_spec(old, suspend=after, runtimePatches=[entry(**B)])
        assert judged(new, old, jobset=jobset(*active)).errors == errors
        assert judged(new, old).errors == errors

    @pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (False, True)])
    def test_not_while_pods_are_stopping(self, before: bool, after: bool) -> None:
        old = trainjob(suspend=before, runtimePatches=[entry(**A)])
        new = with_spec(old, suspend=after, runtimePatches=[entry(**B)])
        errors = judged(new, old, jobset=jobset("node", "launcher")).errors
        assert errors == tuple(
            Finding(
                "spec.runtimePatches",
                f"cannot change while job {name} is still active: its pods are stopping; "
                "try again when status.jobsStatus counts none as active",
                "Forbidden",
            )
            for name in ("node", "launcher")
        )

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ([entry(**A)], []),
            ([], [entry(**A)]),
            ([entry("a.b/c", **A), entry("a.b/d", **B)], [entry("a.b/d", **B), entry("a.b/c", **A)]),
        ],
    )
    def test_what_counts_as_a_change(self, old: Any, new: Any) -> None:
        assert judged(trainjob(runtimePatches=new), trainjob(runtimePatches=old)).errors == (self.RUNS,)

    def test_another_time_or_another_form_is_no_change(self) -> None:
        old = trainjob(runtimePatches=[entry(time="2026-01-01T00:00:00Z", tolerations=[], **A)])
        new = trainjob(runtimePatches=[entry(time="2026-01-02T00:00:00Z", **A)])
        assert judged(new, old, jobset=jobset("node")).allowed


class TestKueue:
    """What Kueue does with a TrainJob must always pass."""

    def test_its_whole_way(self) -> None:
        idle, placed = [entry(KUEUE)], [entry(KUEUE, **A, tolerations=[{"key": "k"}], schedulingGates=[{"name": "g"}])]
        way = [
            (trainjob(suspend=True, runtimePatches=idle), ()),
            (trainjob(suspend=True, runtimePatches=placed), ()),
            (trainjob(suspend=False, runtimePatches=placed), ("node",)),
            (trainjob(suspend=True, runtimePatches=placed), ()),
            (trainjob(suspend=True, runtimePatches=idle), ()),
            (trainjob(suspend=False, runtimePatches=placed), ()),
        ]
        for (old, active), (new, _) in itertools.pairwise(way):
            assert judged(new, old, jobset=jobset(*active)) == Verdict()

    def test_placing_pods_needs_no_rendering_to_judge(self) -> None:
        pipeline = Plain()
        old = trainjob(suspend=True, runtimePatches=[entry(KUEUE)])
        new = with_spec(old, suspend=False, runtimePatches=[entry(KUEUE, **A)])
        assert judged(new, old, jobset=jobset(), pipeline=pipeline).allowed
        assert pipeline.renders == 0


class TestRuntimeGone:
    def test_patches_can_still_change_but_nothing_will_come_of_it(self) -> None:
        old = trainjob(suspend=True, runtimePatches=[entry(**A)])
        verdict = judged(with_spec(old, runtimePatches=[entry(**B)]), old, None)
        assert verdict.errors == ()
        (warning,) = verdict.warnings
        assert warning == (
            'nothing can be made of this TrainJob: there is no ClusterTrainingRuntime "torch": create it first, or '
            "name one that `kubectl get clustertrainingruntimes` lists"
        )

    def test_other_rules_hold_all_the_same(self) -> None:
        old = trainjob(runtimePatches=[entry(**A)])
        assert judged(with_spec(old, runtimePatches=[entry(**B)]), old, None).errors == (TestMoment.RUNS,)

    def test_the_snapshot_judges_and_a_refusal_says_so(self) -> None:
        old = trainjob(suspend=True)
        new = with_spec(old, runtimePatches=[entry(containers=[{"name": "ghost"}])])
        verdict = judged(new, old, source="snapshot")
        assert [finding.path.partition("[")[0] for finding in verdict.errors] == ["spec.runtimePatches"]
        (warning,) = verdict.warnings
        assert warning == (
            "TrainJob job is judged by the runtime as it was when it began (ConfigMap job-runtime-snapshot), "
            "not as it is today"
        )
        assert judged(new, old).warnings == ()
        assert judged(with_spec(old, runtimePatches=[entry(**A)]), old, source="snapshot") == Verdict()


class TestFrozen:
    """What JobSet refuses to change in a JobSet that exists."""

    AFFINITY: ClassVar[dict[str, Any]] = {"affinity": {"nodeAffinity": {"a": 1}}}

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            (AFFINITY, "affinity"),
            ({"volumes": [{"name": "v", "emptyDir": {}}]}, "volumes"),
            ({"serviceAccountName": "other"}, "serviceAccountName"),
            ({"containers": [{"name": "node", "securityContext": {"runAsUser": 1}}]}, "containers"),
            (
                {"securityContext": {"fsGroup": 1}, "imagePullSecrets": [{"name": "p"}]},
                "imagePullSecrets of job node, securityContext",
            ),
            ({"terminationGracePeriodSeconds": 3}, "terminationGracePeriodSeconds"),
        ],
    )
    def test_an_edit_of_what_runs(self, change: dict[str, Any], named: str) -> None:
        old = trainjob(suspend=True)
        new = with_spec(old, runtimePatches=[entry(**change, **A)])
        verdict = judged(new, old, jobset=jobset())
        assert verdict.errors == (
            Finding(
                "spec.runtimePatches",
                f"cannot change {named} of job node: the JobSet is there already, and of its pods only labels, "
                "annotations, nodeSelector, tolerations and schedulingGates can change. Create another TrainJob "
                "instead, or delete this one first to keep its name",
                "Forbidden",
            ),
        )

    def test_taking_it_away_is_an_edit_too(self) -> None:
        old = trainjob(suspend=True, runtimePatches=[entry(**self.AFFINITY)])
        standing = copy.deepcopy(runtime_tree()["spec"]["template"])
        standing["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"].update(self.AFFINITY)
        assert not judged(with_spec(old, runtimePatches=[]), old, jobset=jobset(template=standing)).allowed

    def test_labels_of_jobs(self) -> None:
        change = {"name": "node", "template": {"metadata": {"labels": {"a": "b"}}}}
        patch = {"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [change]}}}}
        old = trainjob(suspend=True)
        (finding,) = judged(with_spec(old, runtimePatches=[patch]), old, jobset=jobset()).errors
        assert "cannot change Job labels of job node:" in finding.problem

    def test_labels_of_the_jobset_and_of_pods(self) -> None:
        pod = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}, "spec": A}
        change = {"name": "node", "template": {"spec": {"template": pod}}}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"replicatedJobs": [change]}}
        patch = {"manager": "a.b/c", "trainingRuntimeSpec": {"template": template}}
        old = trainjob(suspend=True)
        assert judged(with_spec(old, runtimePatches=[patch]), old, jobset=jobset()) == Verdict()

    def test_without_a_jobset_everything_can_change(self) -> None:
        old = trainjob(suspend=True)
        assert judged(with_spec(old, runtimePatches=[entry(**self.AFFINITY)]), old) == Verdict()

    def test_the_same_said_by_another_manager_is_no_edit(self) -> None:
        old = trainjob(suspend=True, runtimePatches=[entry("a.b/c", **self.AFFINITY)])
        new = with_spec(old, runtimePatches=[entry("a.b/d", **A), entry("a.b/e", **self.AFFINITY)])
        assert judged(new, old, jobset=jobset()) == Verdict()

    def test_going_back_to_what_the_jobset_is(self) -> None:
        """An edit that was accepted elsewhere and never took effect can be undone."""
        old = trainjob(suspend=True, runtimePatches=[entry(**self.AFFINITY)])
        assert judged(with_spec(old, runtimePatches=[entry(**A)]), old, jobset=jobset()) == Verdict()

    def test_going_back_though_the_api_server_filled_in_defaults(self) -> None:
        volume: dict[str, Any] = {"volumes": [{"name": "v", "configMap": {"name": "c"}}]}
        standing = copy.deepcopy(runtime_tree()["spec"]["template"])
        pod = standing["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}]
        old = trainjob(suspend=True, runtimePatches=[entry(volumes=[{"name": "v", "configMap": {"name": "d"}}])])
        new = with_spec(old, runtimePatches=[entry(**volume)])
        assert judged(new, old, jobset=jobset(template=standing)) == Verdict()

    @pytest.mark.parametrize("condition", ["Complete", "Failed"])
    def test_of_a_finished_job_nothing_is_made_any_more(self, condition: str) -> None:
        status = {"conditions": [{"type": condition, "status": "True"}]}
        old = {**trainjob(suspend=True), "status": status}
        new = with_spec(old, runtimePatches=[entry(**self.AFFINITY)])
        assert judged(new, old, jobset=jobset()) == Verdict()


class TestOlderForms:
    """A TrainJob that an older release stored is turned at its next write, which is no edit."""

    STORED = trainjob(
        labels={"a": "1"},
        podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"z": "a"}}}],
        trainer={"numProcPerNode": "4"},
        runtimeRef={"apiGroup": "kubeflow.org", "kind": "ClusterTrainingRuntime", "name": "torch"},
    )

    @pytest.mark.parametrize("suspend", [True, False])
    def test_while_it_runs(self, suspend: bool) -> None:
        written = with_spec(self.STORED, suspend=suspend)
        new = default_trainjob(written, self.STORED, now=datetime(2026, 1, 1, tzinfo=UTC)).tree
        assert new["spec"]["runtimePatches"]
        assert judged(new, self.STORED, jobset=jobset("node")) == Verdict()

    def test_a_word_that_cannot_be_counted_stays_where_it_is_stored(self) -> None:
        old = trainjob(trainer={"numProcPerNode": "gpu"}, runtimePatches=[], suspend=True)
        new = with_spec(old, runtimePatches=[entry(**A)])
        assert judged(new, old, pipeline=Plain()).allowed


class TestOutput:
    """Where output goes is settled when the TrainJob is created: its pods are made by it."""

    OUTPUT: ClassVar[dict[str, str]] = {"trainplane.dev/output": "s3://bucket/models"}
    SECRET: ClassVar[dict[str, str]] = {"trainplane.dev/output-secret": "keys"}

    @staticmethod
    def annotated(annotations: dict[str, str], **spec: Any) -> Any:
        tree = trainjob(**spec)
        return {**tree, "metadata": {**tree["metadata"], "annotations": annotations}}

    @pytest.mark.parametrize(
        ("before", "after"),
        [({}, OUTPUT), (OUTPUT, {}), (OUTPUT, {"trainplane.dev/output": "s3://other"}), (OUTPUT, OUTPUT | SECRET)],
    )
    @pytest.mark.parametrize("suspend", [True, False])
    def test_it_cannot_change(self, before: dict[str, str], after: dict[str, str], suspend: bool) -> None:
        verdict = judged(self.annotated(after, suspend=suspend), self.annotated(before, suspend=True))
        (finding,) = verdict.errors
        assert finding.path.startswith("metadata.annotations[trainplane.dev/output")
        assert "Create another TrainJob" in finding.problem

    def test_other_annotations_may(self) -> None:
        new, old = self.annotated(self.OUTPUT | {"note": "x"}, suspend=True), self.annotated(self.OUTPUT, suspend=False)
        assert judged(new, old).allowed

    def test_what_is_being_deleted_is_not_judged(self) -> None:
        new = self.annotated({})
        new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        assert judged(new, self.annotated(self.OUTPUT)).allowed
