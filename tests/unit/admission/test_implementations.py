"""Runtimes that name their MPI as documents do."""

from __future__ import annotations

from typing import Any

import pytest

from trainplane.admission.implementations import default_runtime

ANNOTATION = "trainer.kubeflow.org/mpi-implementation"
LONGEST = 256
"""Characters of a warning that the API server passes on."""


def runtime(said: Any, annotations: Any = None, **mpi: Any) -> dict[str, Any]:
    metadata = {"name": "mpi"} if annotations is None else {"name": "mpi", "annotations": annotations}
    return {"metadata": metadata, "spec": {"mlPolicy": {"numNodes": 1, "mpi": {"mpiImplementation": said, **mpi}}}}


@pytest.mark.parametrize(("said", "meant"), [("Intel", "Intel"), ("IntelMPI", "Intel"), ("MPICH", "MPICH")])
@pytest.mark.parametrize("annotations", [None, {}, {"a": "b"}, {ANNOTATION: "OpenMPI"}, {ANNOTATION: "MPICH"}])
def test_what_kueue_cannot_read_becomes_an_annotation(said: str, meant: str, annotations: Any) -> None:
    written = runtime(said, annotations, runLauncherAsNode=True)
    stored = default_runtime(written)
    assert stored.tree == runtime("OpenMPI", {**(annotations or {}), ANNOTATION: meant}, runLauncherAsNode=True)
    (warning,) = stored.warnings
    assert f"{ANNOTATION}: {meant}" in warning
    assert len(warning) <= LONGEST
    assert default_runtime(stored.tree).tree is stored.tree
    assert written == runtime(said, annotations, runLauncherAsNode=True), "what was sent is not changed"


@pytest.mark.parametrize(
    "written",
    [
        runtime("OpenMPI"),
        runtime("OpenMPI", {ANNOTATION: "Intel"}),
        runtime(""),
        runtime("LAM"),
        runtime("intelmpi"),
        runtime(None),
        runtime(["Intel"]),
        runtime({"Intel": "Intel"}),
        runtime(1),
        runtime("Intel", ["a"]),
        runtime("Intel", "a"),
        {**runtime("Intel"), "metadata": "a"},
        {},
        {"spec": "Intel"},
        {"spec": {"mlPolicy": ["mpi"]}},
        {"spec": {"mlPolicy": {"mpi": "mpiImplementation"}}},
        {"spec": {"mlPolicy": {"mpi": None}}},
        {"metadata": None, "spec": {"mlPolicy": {"torch": {}}}},
    ],
)
def test_all_else_is_left_to_the_schema(written: Any) -> None:
    stored = default_runtime(written)
    assert stored.tree is written
    assert stored.warnings == ()
