"""What a TrainJob becomes and would change, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.client.backend import FakeBackend
from trainplane.api import tree as trees
from trainplane.client.aio import AsyncTrainerClient
from trainplane.client.backends.local import runtimes
from trainplane.client.display.provenance import LONGEST, origin_lines, shorten
from trainplane.client.errors import InvalidError, NotFoundError, RefusedError
from trainplane.client.rendering import compare, render
from trainplane.render.findings import written

Tree = dict[str, Any]
RUNTIME = runtimes.load("torch-distributed", [])
CONTAINER = ("spec", "replicatedJobs", ("name", "node"), "template", "spec", "template", "spec", "containers", 0)


def job(**trainer: Any) -> Tree:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "fit"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"image": "mine:1", "numNodes": 2} | trainer},
    }


def stored(**trainer: Any) -> Tree:
    """Return the TrainJob as a cluster has it."""
    made: Tree = trees.put(render(job(**trainer), RUNTIME).job, "metadata", "resourceVersion", value="7")
    return made


def differences(document: Tree, **trainer: Any) -> dict[str, str]:
    found = compare(stored(**trainer), document, RUNTIME)
    return {f"{one.subject} {written(one.field.path)}": str(one.origin or "") for one in found.differences}


def test_every_field_says_where_it_comes_from() -> None:
    jobset = render(job(), RUNTIME).objects[-1]
    assert str(jobset.origin_of(*CONTAINER, "image")) == "trainjob spec.trainer.image"
    assert str(jobset.origin_of("spec", "replicatedJobs", 0, "name")) == "runtime"
    assert str(jobset.origin_of(*CONTAINER, "env", ("name", "PET_NNODES"), "value")).startswith("plugin Torch")


def test_what_a_cluster_would_refuse_is_refused_in_its_words() -> None:
    with pytest.raises(RefusedError, match=r"spec\.trainer\.numNodes"):
        render(job(numNodes=0), RUNTIME)


def test_the_same_again_changes_nothing_whatever_the_cluster_added() -> None:
    found = compare(trees.put(stored(), "metadata", "labels", value={"made": "by-kueue"}), job(), RUNTIME)
    assert found.differences == ()
    assert found.exists
    assert found.refusal == ""


def test_another_number_of_nodes_is_told_down_to_the_jobset_and_that_it_would_be_refused() -> None:
    told = differences(job(numNodes=3))
    at = "spec.replicatedJobs[node].template.spec"
    assert told["TrainJob fit spec.trainer.numNodes"] == ""
    assert told[f"JobSet fit {at}.parallelism"] == "trainjob spec.trainer.numNodes"
    refusal = compare(stored(), job(numNodes=3), RUNTIME).refusal
    assert "spec.trainer.numNodes: cannot be changed once the TrainJob exists" in refusal


def test_what_may_change_is_not_refused() -> None:
    document = job()
    document["spec"]["suspend"] = True
    found = compare(stored(), document, RUNTIME)
    assert [written(one.field.path) for one in found.differences] == ["spec.suspend", "spec.suspend"]
    assert found.refusal == ""


def test_patches_of_others_stay_beside_those_of_the_document() -> None:
    mine, kueues = {"manager": "example.com/me"}, {"manager": "kueue.x-k8s.io/manager"}
    held = trees.put(stored(), "spec", "runtimePatches", value=[kueues])
    document = trees.put(job(), "spec", "runtimePatches", value=[mine])
    (one,) = compare(held, document, RUNTIME).differences
    assert (written(one.field.path), one.field.after) == ("spec.runtimePatches[1]", mine)


def test_one_that_is_not_there_would_be_made_whole() -> None:
    found = compare(None, job(), RUNTIME)
    assert not found.exists
    assert [(one.subject, one.field.path) for one in found.differences] == [("TrainJob fit", ()), ("JobSet fit", ())]


class TestTheCalls:
    async def test_a_document_is_rendered_on_the_runtime_that_it_names_or_on_another(self) -> None:
        backend = FakeBackend()
        client = AsyncTrainerClient(backend=backend)
        with pytest.raises(NotFoundError, match="there is no runtime torch-distributed"):
            await client.render_job(job())
        assert (await client.render_job(job(), RUNTIME)).objects[-1].tree["kind"] == "JobSet"
        backend.runtime = RUNTIME
        backend.documents = {"fit": stored()}
        assert (await client.render_job("fit")).objects[-1].tree["metadata"]["name"] == "fit"
        assert backend.calls == []

    async def test_a_document_is_compared_with_the_one_of_its_name(self) -> None:
        backend = FakeBackend()
        backend.runtime = RUNTIME
        client = AsyncTrainerClient(backend=backend)
        assert not (await client.compare_job(job())).exists
        backend.documents = {"fit": stored()}
        assert (await client.compare_job(job())).differences == ()
        with pytest.raises(InvalidError, match=r"metadata\.name must say"):
            await client.compare_job({**job(), "metadata": {}})


class TestItsText:
    def test_it_is_the_object_as_yaml_with_an_origin_behind_each_value(self) -> None:
        jobset = render(job(), RUNTIME).objects[-1]
        lines = origin_lines(jobset)
        assert yaml.safe_load("\n".join(f"{line.text}  # {line.origin}" for line in lines)) == jobset.tree
        assert all(line.origin for line in lines if not line.text.endswith((":", "-")))

    def test_code_that_is_shipped_is_cut_and_says_so(self) -> None:
        told = shorten("x" * 5000)
        assert len(told) < LONGEST + 30
        assert told.endswith("(5000 letters)")

    @pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\x9b31m", "\u202eevil"])
    def test_characters_that_steer_a_terminal_are_written_out(self, text: str) -> None:
        assert shorten(text).isprintable()
