"""The example of each framework's page: allowed on the shipped runtime, and a program that Python can read."""

from __future__ import annotations

import ast
import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.render.objects import PIPELINE, container_of, pods_of
from trainplane.admission import default_trainjob, validate_trainjob
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.lint.runtimes import validate

ROOT = Path(__file__).parents[3]
PAGES = ("deepspeed", "flux", "jax", "mlx", "paddle", "plainml", "tensorflow", "torch", "xgboost")
HEREDOC = re.compile(r"<< 'PROGRAM'\n(?P<program>.*?)\n *PROGRAM\n", re.DOTALL)


def example(page: str) -> list[Any]:
    """Return the documents of a page's first example."""
    text = (ROOT / "docs/frameworks" / f"{page}.md").read_text()
    first = re.search(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert first is not None
    return list(yaml.safe_load_all(first[1]))


@pytest.mark.parametrize("page", PAGES)
class TestExample:
    def load(self, page: str) -> tuple[Any, Any]:
        *own, job = example(page)
        name = job["spec"]["runtimeRef"]["name"]
        runtime = own[0] if own else yaml.safe_load((ROOT / "runtimes" / f"{name}.yaml").read_text())
        assert (runtime["metadata"]["name"], job["metadata"]["name"]) == (name, page.replace("plainml", "plain"))
        job["metadata"] |= {"namespace": "team", "uid": "uid-1"}
        job["spec"]["runtimeRef"] |= {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
        return job, read(runtime, ClusterTrainingRuntime)

    def test_it_is_allowed(self, page: str) -> None:
        job, runtime = self.load(page)
        defaulted = default_trainjob(job, None, now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
        assert defaulted.warnings == ()
        verdict = validate_trainjob(
            defaulted.tree, None, runtime=runtime, runtime_source="live", jobset=None, pipeline=PIPELINE
        )
        assert (verdict.errors, verdict.warnings) == ((), ())

    def test_two_pods_train(self, page: str) -> None:
        job, runtime = self.load(page)
        rendering = PIPELINE.render(read(job, TrainJob), runtime)
        jobs = [job["name"] for job in rendering.jobset.tree["spec"]["replicatedJobs"]]
        pods = [pods_of(rendering, job) for job in jobs]  # an MPI launcher may be one of them
        assert tuple(map(sum, zip(*pods, strict=True))) == (2, 2)
        assert all(container_of(rendering, job=job)["command"] for job in jobs)

    def test_its_program_is_one(self, page: str) -> None:
        job, _ = self.load(page)
        trainer = job["spec"]["trainer"]
        program = (trainer.get("args") or trainer["command"])[-1]
        heredoc = HEREDOC.search(program)
        if heredoc:
            program = heredoc["program"]
        elif not {"python", "python3"} & set(trainer["command"]):
            return
        assert len(ast.parse(program).body) > 5


def test_the_runtime_of_a_page_is_good_to_install() -> None:
    text = yaml.safe_dump_all(example("plainml"))
    assert validate(text, pipeline=PIPELINE) == []


def test_every_framework_has_a_page() -> None:
    index = (ROOT / "docs/frameworks/README.md").read_text()
    assert [page for page in PAGES if f"({page}.md" not in index] == []
    linked = re.findall(r"\]\((?!https?:)([^)#]+)", index)
    assert [link for link in linked if not (ROOT / "docs/frameworks" / link).exists()] == []
