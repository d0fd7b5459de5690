from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.render.objects import PIPELINE, container_of, in_container, job, node, origin, patch, runtime, torch
from trainplane.api import names
from trainplane.render import discovery
from trainplane.render.errors import (
    PluginError,
    PluginFailedError,
    PluginRefusedError,
    RegistrationError,
    RenderError,
)
from trainplane.render.findings import Finding, Verdict
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline
from trainplane.render.plan import CreateOnce, Plan
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.plugins.jobset import JobSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree


class Recorder(Plugin):
    """Writes down when it was called."""

    name = "Recorder"

    def __init__(self) -> None:
        self.calls: list[str] = []

    def enforce(self, plan: Plan) -> None:
        self.calls.append(f"enforce {plan.name}")

    def build(self, plan: Plan) -> Iterator[Tree | CreateOnce]:
        self.calls.append(f"build {plan.name}")
        yield CreateOnce("v1", "Secret", f"{plan.name}-key", make=lambda: {"data": {}})
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"l": "1"}}, "data": {}}

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterable[Finding | str]:
        self.calls.append(f"validate {plan.name} {old is not None}")
        return ["careful"]


class Breaking(Plugin):
    """Raises in the hook that it is told."""

    name = "Breaking"

    def __init__(self, hook: str, error: Exception) -> None:
        self.hook = hook
        self.error = error

    def enforce(self, plan: Plan) -> None:
        self._maybe("enforce", plan)

    def build(self, plan: Plan) -> Iterable[Tree]:
        self._maybe("build", plan)
        return ()

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterable[Finding | str]:
        self._maybe("validate", plan, old)
        return ()

    def _maybe(self, hook: str, *given: object) -> None:
        if hook == self.hook and given:
            raise self.error


def with_built_in(*plugins: Plugin) -> Pipeline:
    return Pipeline([*(one() for one in FRAMEWORKS), *plugins, *(one() for one in COMMON)])


class TestOrder:
    def test_it_is_declared(self) -> None:
        assert [plugin.name for plugin in PIPELINE.plugins] == [
            "ShippedCode",
            "PlainML",
            "Torch",
            "Torchrun",
            "MPI",
            "JAX",
            "XGBoost",
            "TensorFlow",
            "Paddle",
            "Flux",
            "Initializers",
            "Cache",
            "SharedCache",
            "Claims",
            "CoScheduling",
            "Volcano",
            "JobSet",
        ]

    def test_the_jobset_is_last(self) -> None:
        rendering = with_built_in(Recorder()).render(job(), runtime())
        assert [one.tree["kind"] for one in rendering.objects] == ["ConfigMap", "JobSet"]
        assert rendering.jobset is rendering.objects[-1]

    def test_a_later_plugin_sees_what_earlier_ones_wrote(self) -> None:
        class Looker(Plugin):
            name = "Looker"

            def enforce(self, plan: Plan) -> None:
                container = plan.trainer_container
                assert container is not None
                seen = sorted(variable["name"] for variable in container.env)
                container.set_env({"name": "SEEN", "value": ",".join(seen)})

        rendering = with_built_in(Looker()).render(job(trainer={"env": [{"name": "A", "value": "1"}]}), torch())
        seen = container_of(rendering)["env"][-1]
        assert seen["value"].startswith("A,MASTER_ADDR,MASTER_PORT,PET_MASTER_ADDR")
        assert origin(rendering.jobset, *in_container("env", ("name", "SEEN"))) == "plugin Looker"

    def test_two_of_a_name_cannot_be(self) -> None:
        with pytest.raises(RegistrationError, match="JobSet: two plugins have this name") as error:
            Pipeline([JobSet(), JobSet()])
        assert error.value.whose == "admin"


class TestHooks:
    def test_enforce_comes_before_build(self) -> None:
        recorder = Recorder()
        with_built_in(recorder).render(job(), runtime())
        assert recorder.calls == ["enforce job", "build job"]

    def test_a_plan_is_enforced_and_not_built(self) -> None:
        recorder = Recorder()
        assert with_built_in(recorder).plan(job(), runtime()).name == "job"
        assert recorder.calls == ["enforce job"]

    def test_validate_sees_a_plan_that_nobody_wrote_into(self) -> None:
        recorder = Recorder()
        verdict = with_built_in(recorder).validate(job(), job(), runtime())
        assert recorder.calls == ["validate job True", "enforce job", "build job"]
        assert verdict == Verdict(warnings=("careful",))

    def test_a_plugin_needs_no_hook(self) -> None:
        class Idle(Plugin):
            name = "Idle"

        assert (
            with_built_in(Idle()).render(job(), runtime()).jobset.tree == PIPELINE.render(job(), runtime()).jobset.tree
        )
        assert with_built_in(Idle()).validate(job(), None, runtime()).allowed

    def test_what_is_kept_once_is_only_asked_for(self) -> None:
        (kept,) = with_built_in(Recorder()).render(job(), runtime()).kept
        assert (kept.api_version, kept.kind, kept.name, kept.make()) == ("v1", "Secret", "job-key", {"data": {}})


class TestOwnership:
    def test_every_object_belongs_to_the_trainjob(self) -> None:
        for rendered in with_built_in(Recorder()).render(job(), runtime()).objects:
            metadata = rendered.tree["metadata"]
            assert metadata["namespace"] == "team"
            assert metadata["ownerReferences"] == [
                {
                    "apiVersion": "trainer.kubeflow.org/v1alpha1",
                    "kind": "TrainJob",
                    "name": "job",
                    "uid": "uid-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
            assert origin(rendered, "metadata", "ownerReferences", 0, "uid") == "trainjob metadata"

    def test_a_plugins_object_is_its_own(self) -> None:
        config = with_built_in(Recorder()).render(job(), runtime()).objects[0]
        assert config.tree["metadata"]["labels"] == {"l": "1"}
        assert origin(config, "metadata", "labels", "l") == "plugin Recorder"

    def test_a_plugin_may_give_the_same_object_each_time(self) -> None:
        always: Tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}

        class Lazy(Plugin):
            name = "Lazy"

            def build(self, plan: Plan) -> Iterable[Tree]:
                return [always] if plan.name else []

        with_built_in(Lazy()).render(job(), runtime())
        assert always == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


class TestErrors:
    @pytest.mark.parametrize("hook", ["enforce", "build"])
    def test_a_refusal_names_the_plugin_and_the_field(self, hook: str) -> None:
        pipeline = with_built_in(Breaking(hook, RefusalError("spec.trainer.numNodes", "must be even: write 2")))
        with pytest.raises(PluginRefusedError) as error:
            pipeline.render(job(), runtime())
        assert str(error.value) == "spec.trainer.numNodes: must be even: write 2 (plugin Breaking)"
        assert (error.value.plugin, error.value.whose, error.value.retryable) == ("Breaking", "user", False)

    @pytest.mark.parametrize("hook", ["enforce", "build"])
    def test_a_plugin_that_breaks_is_named_too(self, hook: str) -> None:
        broken = ZeroDivisionError("by zero")
        with pytest.raises(PluginFailedError, match=r"plugin Breaking broke \(ZeroDivisionError: by zero\)") as error:
            with_built_in(Breaking(hook, broken)).render(job(), runtime())
        assert error.value.__cause__ is broken
        assert error.value.whose == "ours"
        assert isinstance(error.value, PluginError | RenderError)

    @pytest.mark.parametrize("hook", ["enforce", "build", "validate"])
    @pytest.mark.parametrize(
        ("raised", "finding"),
        [
            (RefusalError("spec.x", "no"), Finding("spec.x", "no")),
            (KeyError("k"), None),
        ],
    )
    def test_validation_reports_what_rendering_would_raise(
        self, hook: str, raised: Exception, finding: Finding | None
    ) -> None:
        (found,) = with_built_in(Breaking(hook, raised)).validate(job(), None, runtime()).errors
        if finding is None:
            assert found.cause == "InternalError"
            assert "plugin Breaking broke" in found.problem
        else:
            assert found == finding

    def test_an_object_without_metadata_is_the_plugins_fault(self) -> None:
        class Careless(Plugin):
            name = "Careless"

            def build(self, plan: Plan) -> Iterable[Tree]:
                return [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"job": plan.name}}]

        with pytest.raises(PluginFailedError, match="Careless"):
            with_built_in(Careless()).render(job(), runtime())


class TestValidate:
    def test_every_missing_target_is_found_and_other_rules_still_speak(self) -> None:
        wrong = job(
            patch("a.com/x", job="ghost"),
            patch("b.com/y", containers=[{"name": "ghost"}]),
            trainer={"env": [{"name": "PET_NNODES", "value": "1"}]},
        )
        found = PIPELINE.validate(wrong, None, torch()).errors
        assert [finding.path.rpartition("[")[2] for finding in found[:2]] == ["name=ghost]", "name=ghost]"]
        assert found[2].path == "spec.trainer.env"
        assert len(found) == 3

    def test_a_patch_of_another_form_is_found(self) -> None:
        (finding,) = PIPELINE.validate(job(patch(volumes=[{"emptyDir": {}}])), None, runtime()).errors
        assert finding.path.endswith("volumes[0]")

    def test_a_runtime_of_another_form_is_found(self) -> None:
        odd = runtime().put("spec", "template", "spec", "replicatedJobs", value=[{"name": "node", "template": "x"}])
        (finding,) = PIPELINE.validate(job(), None, odd).errors
        assert finding.path == "spec.runtimeRef"

    def test_the_trainers_variables_have_their_own_field(self) -> None:
        wrong = patch(containers=[{"name": "node", "env": [{"name": "A", "value": "1"}]}])
        (finding,) = PIPELINE.validate(job(wrong), None, runtime()).errors
        assert finding.path.endswith("containers[name=node].env")
        assert "spec.trainer.env" in finding.problem

    @pytest.mark.parametrize("env", [None, []])
    def test_a_patch_of_the_trainer_without_variables_is_welcome(self, env: Any) -> None:
        entry: dict[str, Any] = {"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        if env is not None:
            entry["env"] = env
        change = patch(containers=[entry], volumes=[{"name": "v", "emptyDir": {}}])
        assert PIPELINE.validate(job(change), None, runtime()).allowed

    def test_variables_of_a_sidecar_are_welcome(self) -> None:
        have = node()
        have["template"]["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side"})
        change = patch(containers=[{"name": "side", "env": [{"name": "A", "value": "1"}]}])
        assert PIPELINE.validate(job(change), None, runtime(have)).allowed

    def test_metadata_that_is_not_taken_is_worth_a_warning(self) -> None:
        verdict = PIPELINE.validate(job(patch(metadata={"finalizers": ["f"], "labels": {"a": "b"}})), None, runtime())
        assert verdict.allowed
        assert "finalizers has no effect" in verdict.warnings[0]


class TestVerdict:
    def test_findings_refuse_and_texts_warn(self) -> None:
        verdict = Verdict.of([Finding("a", "b"), "c", Finding("d", "e", "Forbidden")])
        assert verdict == Verdict((Finding("a", "b"), Finding("d", "e", "Forbidden")), ("c",))
        assert not verdict.allowed
        assert Verdict.of(["c"]).allowed

    def test_verdicts_add_up(self) -> None:
        one, two = Verdict((Finding("a", "b"),), ("w",)), Verdict((Finding("c", "d"),))
        assert one + two == Verdict((Finding("a", "b"), Finding("c", "d")), ("w",))


class Alpha(Plugin):
    """A plugin of another package."""

    name = "Alpha"


class Nameless(Plugin):
    """Forgot its name."""


class TestDiscovery:
    @pytest.fixture
    def install(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        def install(*values: str) -> None:
            found = EntryPoints(EntryPoint(value, value, "trainplane.plugins") for value in values)
            monkeypatch.setattr(discovery, "entry_points", lambda *, group: found.select(group=group))

        return install

    def test_plugins_of_packages_come_between(self, install: Any) -> None:
        install(f"{__name__}:Recorder", f"{__name__}:Alpha")
        order = [plugin.name for plugin in Pipeline.default().plugins]
        before, after = [plugin.name for plugin in FRAMEWORKS], [plugin.name for plugin in COMMON]
        assert order == [*before, "Alpha", "Recorder", *after]

    def test_without_any(self, install: Any) -> None:
        install()
        assert [plugin.name for plugin in Pipeline.default().plugins] == [plugin.name for plugin in PIPELINE.plugins]

    @pytest.mark.parametrize(
        ("value", "problem"),
        [
            ("no_such_module:X", "cannot be loaded (ModuleNotFoundError"),
            ("builtins:int", "makes a int, which is no"),
            ("NAMELESS", "makes a Nameless, which is no"),
            ("BREAKING", "cannot be loaded (TypeError"),
        ],
    )
    def test_one_that_cannot_be_used_is_named(self, install: Any, value: str, problem: str) -> None:
        own = {"NAMELESS": f"{__name__}:Nameless", "BREAKING": f"{__name__}:Breaking"}
        install(own.get(value, value))
        with pytest.raises(RegistrationError) as error:
            Pipeline.default()
        assert problem in str(error.value)
        assert own.get(value, value) in str(error.value)

    def test_a_name_that_is_taken(self, install: Any) -> None:
        install("trainplane.render.plugins.torch:Torch")
        with pytest.raises(RegistrationError, match="Torch"):
            Pipeline.default()


class TestPlan:
    def test_it_knows_its_pods(self) -> None:
        plan = PIPELINE.plan(job(trainer={"numNodes": 3}), torch())
        (pods,) = plan.pod_sets
        assert plan.trainer_set is pods
        assert plan.pod_set("node") is pods
        assert plan.pod_set("ghost") is None
        assert (pods.name, pods.ancestor, pods.count, pods.replicas) == ("node", "trainer", 3, 1)
        assert list(pods.endpoints) == [f"job-node-0-{rank}.job" for rank in range(3)]

    def test_the_framework_is_the_runtimes_label(self) -> None:
        labelled = runtime().put("metadata", "labels", value={names.LABEL_FRAMEWORK: "dask"})
        assert PIPELINE.plan(job(), labelled).framework == "dask"
        assert PIPELINE.plan(job(), runtime()).framework == ""

    def test_windows_write_and_mark(self) -> None:
        plan = PIPELINE.plan(job(), runtime())
        (pods,) = plan.pod_sets
        container = pods.container("node")
        assert container is not None
        assert pods.containers[0].tree is container.tree
        pods.label_pods({"l": "1"})
        pods.annotate_pods({"a": "2"})
        pods.set_volumes({"name": "v", "emptyDir": {}})
        pods.set_init_containers({"name": "first", "image": "i"})
        container.set_mounts({"name": "v", "mountPath": "/v"})
        assert pods.tree["template"]["spec"]["template"] == {
            "metadata": {"labels": {"l": "1"}, "annotations": {"a": "2"}},
            "spec": {
                "containers": [
                    {"name": "node", "image": "torch", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "initContainers": [{"name": "first", "image": "i"}],
            },
        }
        assert [window.name for window in pods.init_containers] == ["first"]
        template = plan.template.tree
        for path in (("metadata", "labels", "l"), ("spec", "volumes", 0), ("spec", "initContainers", 0, "image")):
            full = ("spec", "replicatedJobs", 0, "template", "spec", "template", *path)
            assert str(plan.writer.provenance.origin_of(template, full)) == "plugin JobSet"
