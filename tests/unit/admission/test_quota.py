"""`resourcesPerNode` of a TrainJob that Kueue counts says all that its nodes ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.admission.objects import KUEUE, entry, job_patch, plain, replicated_job, runtime, trainjob, with_spec
from trainplane.admission.defaulting import default_trainjob, needs_runtime
from trainplane.admission.quota import is_counted, judge_counted, spell_out
from trainplane.admission.trainjobs import validate_trainjob
from trainplane.api import names
from trainplane.api.document import read
from trainplane.api.trainjob import TrainJob
from trainplane.render.pipeline import Pipeline

if TYPE_CHECKING:
    from trainplane.api.document import Document
    from trainplane.api.runtime import ClusterTrainingRuntime
    from trainplane.api.tree import Tree
    from trainplane.render.findings import Finding

GPU = "nvidia.com/gpu"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PIPELINE = Pipeline.default()
GHOST = {
    "manager": "example.com/me",
    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job_patch("ghost", nodeSelector={"a": "b"})]}}},
}


def with_resources(resources: Any, *, policy: Any = None, name: str = "node") -> Document[ClusterTrainingRuntime]:
    job = replicated_job(name)
    job["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return runtime(job, policy=policy)


def queued(**spec: Any) -> Tree:
    job = trainjob(**spec)
    return {**job, "metadata": {**job["metadata"], "labels": {names.LABEL_QUEUE: "queue"}}}


def asking(**resources: Any) -> Tree:
    return queued(trainer={"resourcesPerNode": resources})


def resources_of(job: Tree) -> Any:
    return job["spec"]["trainer"]["resourcesPerNode"]


class TestWhoIsCounted:
    def test_a_job_in_a_queue(self) -> None:
        assert is_counted(queued())

    def test_a_job_with_kueues_entry_which_may_get_a_queue_later(self) -> None:
        assert is_counted(trainjob(runtimePatches=[entry("example.com/me"), entry(KUEUE)]))

    @pytest.mark.parametrize(
        "job",
        [
            trainjob(),
            trainjob(runtimePatches=[entry("example.com/me")]),
            trainjob(runtimePatches=7),
            trainjob(runtimePatches=["no entry"]),
            {**trainjob(), "metadata": {"labels": {names.LABEL_QUEUE: ""}}},
            {},
        ],
    )
    def test_no_other(self, job: Tree) -> None:
        assert not is_counted(job)


class TestSpellingOut:
    def test_the_runtimes_amounts_are_written_down(self) -> None:
        given = with_resources({"limits": {GPU: "2", "cpu": "8"}, "requests": {"memory": "1Gi"}})
        job = spell_out(asking(requests={"cpu": "4"}), given)
        assert resources_of(job) == {"limits": {GPU: "2", "cpu": "8"}, "requests": {"memory": "1Gi", "cpu": "4"}}

    def test_the_jobs_amount_wins(self) -> None:
        job = spell_out(asking(limits={GPU: "1"}), with_resources({"limits": {GPU: "2"}}))
        assert resources_of(job) == {"limits": {GPU: "1"}}

    def test_a_device_gets_the_limit_that_its_pods_get(self) -> None:
        job = spell_out(asking(requests={GPU: "1"}), with_resources({}))
        assert resources_of(job) == {"limits": {GPU: "1"}, "requests": {GPU: "1"}}

    @pytest.mark.finding("semantics", 3, "resourcesPerNode vanished on a runtime without mlPolicy")
    def test_what_the_job_says_stays_on_a_runtime_without_a_policy_too(self) -> None:
        given = with_resources({"requests": {"cpu": "1", "memory": "1Gi"}}, policy={})
        given = read({**given.tree, "spec": {"template": given.tree["spec"]["template"]}}, type(given.view))
        stored = resources_of(spell_out(asking(requests={"cpu": "7"}), given))
        assert stored == {"requests": {"cpu": "7", "memory": "1Gi"}}

    @pytest.mark.parametrize("job", [queued(), queued(trainer={"numNodes": 2})])
    def test_who_says_nothing_is_left_alone(self, job: Tree) -> None:
        assert spell_out(job, with_resources({"limits": {GPU: "2"}})) is job

    def test_what_says_everything_already_keeps_its_letters(self) -> None:
        job = asking(limits={"cpu": "0.5"}, requests={})
        assert spell_out(job, with_resources({"limits": {"cpu": "1"}})) is job

    @pytest.mark.parametrize(
        "job",
        [
            asking(requests={"cpu": "1"}) | {"metadata": 7},
            queued(trainer={"resourcesPerNode": 7}),
            queued(trainer={"resourcesPerNode": {}}, runtimePatches=[GHOST]),
        ],
        ids=["no TrainJob", "no resources", "a patch of a job that is not there"],
    )
    def test_what_cannot_be_resolved_is_left_to_validation(self, job: Tree) -> None:
        assert spell_out(job, with_resources({"limits": {"cpu": "2"}})) is job

    def test_two_containers_with_different_amounts_cannot_be_said_in_one(self) -> None:
        """MPI with a launcher that is a node: `resourcesPerNode` goes into both."""
        launcher, node = replicated_job("launcher", "trainer"), replicated_job("node", None, "node")
        for one, cpus in ((launcher, "1"), (node, "8")):
            container = one["template"]["spec"]["template"]["spec"]["containers"][0]
            container.update(name="node", resources={"limits": {"cpu": cpus}})
        policy = {"numNodes": 1, "mpi": {"runLauncherAsNode": True}}
        job = asking(requests={"memory": "1Gi"})
        assert spell_out(job, runtime(launcher, node, policy=policy)) is job
        for one in (launcher, node):
            one["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}}
        same = spell_out(job, runtime(launcher, node, policy=policy))
        assert resources_of(same) == {"limits": {"cpu": "8"}, "requests": {"memory": "1Gi"}}

    @pytest.mark.finding("semantics", 9, "Kueue counted no GPU where training containers differ")
    def test_a_queued_job_that_kueue_would_count_wrongly_is_refused(self) -> None:
        """Actor with GPUs, learner without: to Kueue, memory would be all that either has."""
        actor, learner = replicated_job("actor"), replicated_job("learner")
        container = actor["template"]["spec"]["template"]["spec"]["containers"][0]
        container["resources"] = {"limits": {GPU: "8"}}

        def judged(job: Tree, *jobs: Tree) -> list[Finding]:
            return list(judge_counted(job, runtime(*jobs)))

        (finding,) = judged(asking(limits={"memory": "8Gi"}), actor, learner)
        assert finding.path == "spec.trainer.resourcesPerNode"
        assert "jobs actor and learner different amounts" in finding.problem
        assert judged(asking(limits={GPU: "8", "memory": "8Gi"}), actor, learner) == []
        assert judged(asking(limits={"memory": "8Gi"}), actor) == []
        assert judged(queued(), actor, learner) == []
        free = asking(limits={"memory": "8Gi"})
        del free["metadata"]["labels"]
        assert judged(free, actor, learner) == []
        verdict = validate_trainjob(
            asking(limits={"memory": "8Gi"}),
            None,
            runtime=runtime(actor, learner),
            runtime_source="live",
            jobset=None,
            pipeline=plain(),
        )
        assert [one.path for one in verdict.errors] == ["spec.trainer.resourcesPerNode"]

    amounts = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.sampled_from(["1", "2", "500m", "0.5"]))
    sets = st.fixed_dictionaries({}, optional={"limits": amounts, "requests": amounts})

    @given(sets.filter(lambda one: GPU not in one.get("requests", {}) or GPU in one.get("limits", {})), sets)
    def test_it_renders_to_the_same_pods_and_twice_is_once(self, of_runtime: Any, of_job: Any) -> None:
        """For every runtime whose pods may exist: a request of a device needs a limit."""
        given, job = with_resources(of_runtime), asking(**of_job)
        spelt = spell_out(job, given)
        before, after = (
            PIPELINE.render(read(one, TrainJob), given).jobset.tree["spec"]["replicatedJobs"] for one in (job, spelt)
        )
        assert before == after
        assert spell_out(spelt, given) is spelt
        (pod,) = (one["template"]["spec"]["template"]["spec"] for one in after)
        made = pod["containers"][0].get("resources", {})
        for kind in ("limits", "requests"):
            assert set(resources_of(spelt).get(kind, {})) == set(made.get(kind, {})), "nothing is left to the runtime"


class TestDefaulting:
    given = with_resources({"limits": {GPU: "2"}})
    whole: Any = {"limits": {GPU: "2"}, "requests": {"cpu": "1"}}  # noqa: RUF012 nobody changes it

    def default(self, new: Tree, old: Tree | None = None) -> Tree:
        return default_trainjob(new, old, now=NOW, runtime=self.given).tree

    def test_a_job_in_a_queue_is_spelt_out(self) -> None:
        assert resources_of(self.default(asking(requests={"cpu": "1"}))) == self.whole

    def test_a_job_that_kueue_does_not_know_is_stored_as_it_was_sent(self) -> None:
        job = trainjob(trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}})
        assert resources_of(self.default(job)) == {"requests": {"cpu": "1"}}

    def test_the_users_own_file_sent_again_changes_nothing(self) -> None:
        job = asking(requests={"cpu": "1"})
        stored = self.default(job)
        assert self.default(job, stored) == stored

    def test_a_real_change_is_not_hidden(self) -> None:
        stored = self.default(asking(requests={"cpu": "1"}))
        assert resources_of(self.default(asking(requests={"cpu": "2"}), stored))["requests"] == {"cpu": "2"}

    def test_what_was_stored_before_kueue_came_stays(self) -> None:
        """`spec.trainer` cannot change any more: neither can we spell it out."""
        stored = trainjob(trainer={"resourcesPerNode": {"requests": {"cpu": "1"}}})
        late = with_spec(asking(requests={"cpu": "1"}), suspend=True)
        assert resources_of(self.default(late, stored)) == {"requests": {"cpu": "1"}}

    def test_the_runtime_is_asked_for_only_where_it_makes_a_difference(self) -> None:
        job = asking(requests={"cpu": "1"})
        assert needs_runtime(job, None)
        assert needs_runtime(job, self.default(job))
        assert needs_runtime(trainjob(trainer={"numProcPerNode": "auto"}), None)
        assert not needs_runtime(job, job)
        assert not needs_runtime(queued(trainer={"numNodes": 2}), None)
        assert not needs_runtime(trainjob(trainer={"resourcesPerNode": {}}), None)


class TestElasticNodes:
    RUNTIME = runtime(replicated_job("node"), policy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}})

    @pytest.mark.parametrize("spec", [{}, {"trainer": {"image": "mine"}}])
    def test_kueue_is_told_how_many_there_will_be(self, spec: Any) -> None:
        job = queued(**spec)
        assert needs_runtime(job, None)
        stored = default_trainjob(job, None, now=NOW, runtime=self.RUNTIME).tree
        assert stored["spec"]["trainer"] == {**spec.get("trainer", {}), "numNodes": 4}
        assert default_trainjob(job, stored, now=NOW, runtime=self.RUNTIME).tree["spec"] == stored["spec"]

    def test_the_trainjob_has_the_last_word(self) -> None:
        job = queued(trainer={"numNodes": 3})
        assert default_trainjob(job, None, now=NOW, runtime=self.RUNTIME).tree == job

    def test_who_is_in_no_queue_is_left_alone(self) -> None:
        job = trainjob()
        assert not needs_runtime(job, None)
        assert default_trainjob(job, None, now=NOW, runtime=self.RUNTIME).tree == job
