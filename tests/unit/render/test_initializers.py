from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import (
    PIPELINE,
    container_of,
    in_container,
    job,
    node,
    origin,
    patch,
    pods_of,
    render,
    replicated_job,
    runtime,
    values_of,
)

PARTS = [("dataset", "dataset-initializer"), ("model", "model-initializer")]
parts = pytest.mark.parametrize(("part", "name"), PARTS)


def initializer(name: str, ancestor: str | None = None, mounts: Any = None, **container: Any) -> dict[str, Any]:
    mounts = [{"name": "initializer", "mountPath": "/workspace"}] if mounts is None else mounts
    entry = {"name": ancestor or name, "image": "fetch", "volumeMounts": mounts, **container}
    volumes = [{"name": mount["name"], "emptyDir": {}} for mount in mounts]
    return replicated_job(name, ancestor or name, containers=[entry], volumes=volumes)


def both(**container: Any) -> Any:
    return runtime(*(initializer(name, **container) for _, name in PARTS), node())


def spec_of(rendering: Any, job: str) -> dict[str, Any]:
    jobs = {one["name"]: one for one in rendering.jobset.tree["spec"]["replicatedJobs"]}
    spec: dict[str, Any] = jobs[job]["template"]["spec"]["template"]["spec"]
    return spec


@parts
class TestRendering:
    def test_the_source_becomes_variables_and_a_secret(self, part: str, name: str) -> None:
        said = {
            "storageUri": "hf://org/name",
            "env": [{"name": "A", "value": "1"}, {"name": "B"}],
            "secretRef": {"name": "token"},
        }
        have = both(env=[{"name": "OLD", "value": "0"}, {"name": "STORAGE_URI", "value": "hf://default"}])
        rendering = render(job(initializer={part: said}), have)
        container = container_of(rendering, name, name)
        assert values_of(container) == {"OLD": "0", "STORAGE_URI": "hf://org/name", "A": "1", "B": ""}
        assert container["envFrom"] == [{"secretRef": {"name": "token"}}]
        assert pods_of(rendering, name) == (1, 1)
        at = in_container(job=name, container=name)
        assert origin(rendering.jobset, *at, "env", ("name", "STORAGE_URI")) == (
            f"trainjob spec.initializer.{part}.storageUri"
        )
        assert origin(rendering.jobset, *at, "env", ("name", "A")) == f"trainjob spec.initializer.{part}.env"
        assert origin(rendering.jobset, *at, "envFrom", 0) == f"trainjob spec.initializer.{part}.secretRef"
        assert origin(rendering.jobset, *at, "env", ("name", "OLD")) == "runtime"

    def test_the_other_one_is_left_alone(self, part: str, name: str) -> None:
        rendering = render(job(initializer={part: {"storageUri": "hf://a/b"}}), both())
        (other,) = {one for _, one in PARTS} - {name}
        assert "env" not in container_of(rendering, other, other)
        assert "env" not in container_of(rendering)

    def test_a_source_of_its_own_secret_stays(self, part: str, name: str) -> None:
        have = both(envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "token"}}])
        rendering = render(job(initializer={part: {"secretRef": {"name": "token"}}}), have)
        assert container_of(rendering, name, name)["envFrom"] == [
            {"configMapRef": {"name": "c"}},
            {"secretRef": {"name": "token"}},
        ]

    def test_an_empty_uri_is_said_on_purpose(self, part: str, name: str) -> None:
        have = both(env=[{"name": "STORAGE_URI", "value": "hf://default"}])
        container = container_of(render(job(initializer={part: {"storageUri": ""}}), have), name, name)
        assert values_of(container) == {"STORAGE_URI": ""}

    def test_no_uri_leaves_the_runtimes(self, part: str, name: str) -> None:
        have = both(env=[{"name": "STORAGE_URI", "value": "hf://default"}])
        container = container_of(render(job(initializer={part: {}}), have), name, name)
        assert values_of(container) == {"STORAGE_URI": "hf://default"}

    def test_the_label_decides_not_the_jobs_name(self, part: str, name: str) -> None:
        have = runtime(initializer("fetch", name), node())
        rendering = render(job(initializer={part: {"storageUri": "hf://a/b"}}), have)
        assert values_of(container_of(rendering, name, "fetch")) == {"STORAGE_URI": "hf://a/b"}


@parts
class TestValidation:
    def verdict(self, part: str, have: Any, uri: str = "hf://org/name") -> Any:
        return PIPELINE.validate(job(initializer={part: {"storageUri": uri}}), None, have)

    def test_a_runtime_that_has_it(self, part: str, name: str) -> None:
        verdict = self.verdict(part, runtime(initializer(name), node()))
        assert verdict.allowed
        assert verdict.warnings == ()

    def test_a_runtime_without_the_job(self, part: str, name: str) -> None:
        (finding,) = self.verdict(part, runtime()).errors
        assert finding.path == "spec.runtimeRef"
        assert f"no replicated job {name}" in finding.problem

    def test_a_runtime_without_the_container(self, part: str, name: str) -> None:
        (finding,) = self.verdict(part, runtime(replicated_job(name, name, containers=[{"name": "x"}]))).errors
        assert finding.path == "spec.runtimeRef"
        assert f"no container {name}" in finding.problem

    def test_an_init_container_is_no_container(self, part: str, name: str) -> None:
        have = runtime(replicated_job(name, name, containers=[{"name": "x"}], initContainers=[{"name": name}]))
        assert not self.verdict(part, have).allowed

    def test_a_job_without_the_label_is_worth_a_warning(self, part: str, name: str) -> None:
        verdict = self.verdict(part, runtime(replicated_job(name)))
        assert verdict.allowed
        assert "has no effect" in verdict.warnings[0]

    @pytest.mark.parametrize(
        "mounts", [[], [{"name": "data", "mountPath": "/other"}], [{"name": "x", "mountPath": "/w"}]]
    )
    def test_what_is_not_shared_is_worth_a_warning(self, part: str, name: str, mounts: Any) -> None:
        verdict = self.verdict(part, runtime(initializer(name, mounts=mounts)))
        assert verdict.allowed
        assert "will be lost" in verdict.warnings[0]

    @pytest.mark.parametrize("path", ["/workspace", "/workspace/", "/", "same"])
    def test_any_volume_there_shares_it(self, part: str, name: str, path: str) -> None:
        where = f"/workspace/{part}" if path == "same" else path
        verdict = self.verdict(part, runtime(initializer(name, mounts=[{"name": "mine", "mountPath": where}])))
        assert verdict.warnings == ()

    def test_a_patch_may_not_set_its_variables(self, part: str, name: str) -> None:
        wrong = patch(job=name, containers=[{"name": name, "env": [{"name": "A", "value": "1"}]}])
        (finding,) = PIPELINE.validate(job(wrong), None, both()).errors
        assert finding.path.endswith(f"containers[name={name}].env")
        assert f"spec.initializer.{part}.env" in finding.problem


def test_a_dataset_that_a_cache_serves_needs_no_volume() -> None:
    have = runtime(initializer("dataset-initializer", mounts=[], image="kubeflow/dataset-initializer:v2"), node())
    said = {"storageUri": "cache://schema/table", "env": [{"name": "METADATA_LOC", "value": "s3://b/m.json"}]}
    verdict = PIPELINE.validate(job(initializer={"dataset": said}), None, have)
    assert (verdict.errors, verdict.warnings) == ((), ())


def test_nothing_is_asked_of_a_trainjob_that_fetches_nothing() -> None:
    assert PIPELINE.validate(job(initializer={}), None, runtime()).allowed
    assert PIPELINE.validate(job(), None, runtime()).allowed


@parts
class TestClaims:
    def test_a_claim_is_mounted_to_be_read(self, part: str, name: str) -> None:
        rendering = render(job(initializer={part: {"storageUri": "pvc://team.data/sets/alpaca"}}), both())
        spec = spec_of(rendering, name)
        claim = {"name": "trainplane-claim", "persistentVolumeClaim": {"claimName": "team.data"}}
        mount = {"name": "trainplane-claim", "mountPath": "/pvc/team.data", "readOnly": True}
        assert spec["volumes"] == [{"name": "initializer", "emptyDir": {}}, claim]
        assert spec["containers"][0]["volumeMounts"] == [{"name": "initializer", "mountPath": "/workspace"}, mount]
        at = in_container(job=name, container=name)
        assert origin(rendering.jobset, *at, "volumeMounts", ("mountPath", "/pvc/team.data")) == (
            f"trainjob spec.initializer.{part}.storageUri"
        )
        (other,) = {one for _, one in PARTS} - {name}
        assert len(spec_of(rendering, other)["volumes"]) == 1

    @pytest.mark.parametrize("path", ["/pvc/data", "/pvc/data/", "/pvc"])
    def test_what_the_runtime_mounts_there_stays(self, part: str, name: str, path: str) -> None:
        have = runtime(initializer(name, mounts=[{"name": "mine", "mountPath": path}]), node())
        spec = spec_of(render(job(initializer={part: {"storageUri": "pvc://data/x"}}), have), name)
        assert [volume["name"] for volume in spec["volumes"]] == ["mine"]
        assert [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]] == [path]

    def test_claims_that_lie_elsewhere_are_the_authors(self, part: str, name: str) -> None:
        said = {"storageUri": "pvc://data/x", "env": [{"name": "PVC_ROOT", "value": "/claims"}]}
        assert len(spec_of(render(job(initializer={part: said}), both()), name)["volumes"]) == 1

    @pytest.mark.parametrize("claim", ["", "Data", "a_b", "-a", "a..b", "user@data", "data:80", "a" * 254, "../up"])
    def test_what_can_be_no_claim_is_refused_and_never_mounted(self, part: str, name: str, claim: str) -> None:
        asked = job(initializer={part: {"storageUri": f"pvc://{claim}/x"}})
        (finding,) = PIPELINE.validate(asked, None, both()).errors
        assert finding.path == f"spec.initializer.{part}.storageUri"
        assert "pvc://CLAIM/path" in finding.problem
        assert len(finding.problem) < 250
        assert PIPELINE.validate(asked, asked, both()).allowed, "one that is stored must be able to change and go"
        assert len(spec_of(render(asked, both()), name)["volumes"]) == 1

    def test_another_scheme_names_no_claim(self, part: str, name: str) -> None:
        rendering = render(job(initializer={part: {"storageUri": "s3://pvc://data/x"}}), both())
        assert len(spec_of(rendering, name)["volumes"]) == 1
