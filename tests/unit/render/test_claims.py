"""Which claims outlive their TrainJob."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.render.objects import job, node, render
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob

TEMPLATES = [{"metadata": {"name": "initializer"}}]


def policies(annotations: dict[str, str], *given: dict[str, Any], output: bool = False) -> Any:
    """Return the claims' policies of a JobSet, for those that a runtime has."""
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-distributed", "annotations": annotations},
        "spec": {"template": {"spec": {"volumeClaimPolicies": list(given), "replicatedJobs": [node()]}}},
    }
    said = job().tree
    if output:
        said = {**said, "metadata": {**said["metadata"], "annotations": {"trainplane.dev/output": "s3://bucket/x"}}}
    rendering = render(read(said, TrainJob), read(runtime, ClusterTrainingRuntime))
    return rendering.jobset.tree["spec"].get("volumeClaimPolicies")


def test_they_are_kept_if_the_runtime_says_so() -> None:
    plain = {"templates": TEMPLATES}
    kept = {"templates": TEMPLATES, "retentionPolicy": {"whenDeleted": "Retain"}}
    assert policies({"trainer.kubeflow.org/claims": "Retain"}, plain, plain) == [kept, kept]
    assert policies({}, plain) == [plain]
    assert policies({"trainer.kubeflow.org/claims": "Delete"}, plain) == [plain]
    assert policies({"trainer.kubeflow.org/claims": "Retain"}, plain, output=True) == [plain], (
        "what it made is elsewhere"
    )


@pytest.mark.parametrize("word", ["Delete", "Retain"])
def test_what_a_template_says_itself_stands(word: str) -> None:
    said = {"templates": TEMPLATES, "retentionPolicy": {"whenDeleted": word}}
    assert policies({"trainer.kubeflow.org/claims": "Retain"}, said) == [said]
