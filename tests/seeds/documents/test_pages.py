"""The guide to Trainer v2 sends its readers on to six pages: each is there by its name and tells of its subjects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.seeds.documents.promises import ROOT
from tests.seeds.documents.reading import documents, statements

SUBJECTS = {
    "installation-and-operations": (
        "by Helm",
        "by kubectl",
        "Values",
        "CRDs",
        "Custom resources",
        "Upgrades",
        "runtimes.defaultEnabled",
    ),
    "python-sdk": (
        "TrainerClient",
        "CustomTrainer",
        "BuiltinTrainer",
        "TorchTuneConfig",
        "get_job_logs",
        "A job's life",
    ),
    "scheduling-and-integrations": (
        "Kueue",
        "quota",
        "Volcano",
        "coscheduling",
        "Topology",
        "Priority",
        "podGroupPolicy",
    ),
    "advanced-configuration": (
        "A runtime of one's own",
        "runtimePatches",
        "init containers",
        "sidecars",
        "NCCL",
        "topology",
        "Volumes",
        "podTemplateOverrides",
    ),
    "troubleshooting": ("NCCL", "OutOfMemory", "Unschedulable", "ImagePull", "Runtimes", "The SDK", "kubectl describe"),
    "training-pipeline-integration": (
        "DVC",
        "Ray Data",
        "TrainJob",
        "FSDP",
        "DeepSpeed",
        "Weights & Biases",
        "MLflow",
        "S3",
        "lm-eval",
    ),
}
"""The pages, and what stands on each of what the guide says of it."""


def text(page: str) -> str:
    return (ROOT / f"docs/references/{page}.md").read_text()


@pytest.mark.parametrize("page", SUBJECTS)
def test_the_page_is_there_and_tells_of_its_subjects(page: str) -> None:
    assert [subject for subject in SUBJECTS[page] if subject not in text(page)] == []


@pytest.mark.parametrize("page", SUBJECTS)
def test_the_page_leads_on(page: str) -> None:
    """A reference is of use by where it leads: to guides and to other references."""
    assert len(set(re.findall(r"\]\((\.\./[^)#]+)", text(page)))) >= 5


@pytest.mark.skipif(not documents(), reason="the documents do not lie beside this clone")
def test_these_are_the_pages_that_the_guide_names() -> None:
    named = [
        name for one in statements() if one.kind == "row" for name in re.findall(r"^references/(\S+)\.md", one.text)
    ]
    assert {Path(name).name for name in named} == SUBJECTS.keys()
