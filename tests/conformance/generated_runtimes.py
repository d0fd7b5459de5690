"""Runtimes that Hypothesis draws: of every framework, of a namespace and of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from tests.conformance.cases import NAMESPACE
from tests.conformance.documents import initializer_job, replicated_job, runtime
from tests.conformance.generated_pods import METADATA, pods

if TYPE_CHECKING:
    from tests.conformance.cases import Tree
    from tests.conformance.generated_pods import Draw

FRAMEWORKS: Final = ("torch", "mpi", "plain", "jax", "xgboost", "flux")
"""Whose turn it is, from case to case; `plain` has no framework."""
_NODES = st.sampled_from((None, None, 1, 2, 3))
_PROCESSES = {"numProcPerNode": st.integers(1, 4)}
_SETTINGS: Final[dict[str, st.SearchStrategy[Tree]]] = {
    "torch": st.just({}),
    "jax": st.just({}),
    "xgboost": st.just({}),
    "flux": st.fixed_dictionaries({}, optional=_PROCESSES),
    "mpi": st.fixed_dictionaries(
        {},
        optional=_PROCESSES
        | {
            "mpiImplementation": st.just("OpenMPI"),
            "sshAuthMountPath": st.sampled_from(("/root/.ssh", "/home/mpiuser/.ssh")),
            "runLauncherAsNode": st.booleans(),
        },
    ),
}
_JOBS = st.sampled_from((None, {"parallelism": 2}, {"parallelism": 3, "backoffLimit": 0}))
_NAMES = st.sampled_from(("node", "node", "node", "worker"))
_DEPRECATED = {"labels": {"trainer.kubeflow.org/support": "deprecated"}}


@st.composite
def runtimes(draw: Draw, framework: str) -> Tree:
    """Return a runtime of a framework."""
    jobs = draw(_launched() if framework == "mpi" else _trained())
    before = draw(st.lists(st.sampled_from(("dataset", "model")), unique=True, max_size=2))
    names: Tree = draw(
        st.sampled_from(
            ({}, {}, {"kind": "ClusterTrainingRuntime", "name": f"{NAMESPACE}.runtime"}),
        )
    )
    return runtime(
        *(initializer_job(which, which) for which in before),
        *jobs,
        policy=draw(_policies(framework)),
        metadata=draw(st.sampled_from((None, None, None, _DEPRECATED))),
        template=draw(METADATA),
        **names,
        **draw(_words(jobs[-1]["name"])),
    )


@st.composite
def _policies(draw: Draw, framework: str) -> Tree | None:
    nodes = draw(_NODES)
    counted: Tree = {} if nodes is None else {"numNodes": nodes}
    if framework == "plain":
        found: Tree | None = draw(st.sampled_from((None, counted)))
        return found
    return {framework: draw(_SETTINGS[framework]), **counted}


def _words(job: str) -> st.SearchStrategy[Tree]:
    """Return what a runtime may say of its JobSet beside its jobs."""
    return st.sampled_from(
        (
            {},
            {"network": {"subdomain": "sub"}},
            {"network": {"enableDNSHostnames": True, "publishNotReadyAddresses": False}},
            {"failurePolicy": {"maxRestarts": 2}},
            {"successPolicy": {"operator": "Any", "targetReplicatedJobs": [job]}},
            {"ttlSecondsAfterFinished": 5},
        )
    )


@st.composite
def _job(draw: Draw, name: str, ancestor: str | None) -> Tree:
    job = replicated_job(name, ancestor=ancestor, job=draw(_JOBS), **draw(pods()))
    job["template"]["spec"]["template"]["metadata"] = draw(METADATA)
    return job


@st.composite
def _trained(draw: Draw) -> list[Tree]:
    """Return the one job whose pods train."""
    ancestor = draw(st.sampled_from(("trainer", "trainer", "trainer", "trainer", "trainer", None)))
    return [draw(_job(draw(_NAMES) if ancestor else "node", ancestor))]


@st.composite
def _launched(draw: Draw) -> list[Tree]:
    """Return MPI's jobs: nodes, and a launcher that waits for them or not; either is the one that trains."""
    ancestors: Any = draw(st.sampled_from(((None, "trainer"), (None, "trainer"), (None, "trainer"), ("trainer", None))))
    nodes, launcher = draw(_job("node", ancestors[0])), draw(_job("launcher", ancestors[1]))
    if draw(st.booleans()):
        launcher["dependsOn"] = [{"name": "node", "status": "Ready"}]
    return [nodes, launcher]
