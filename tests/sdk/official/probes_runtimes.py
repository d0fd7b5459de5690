"""Runtimes: found, read, and looked into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sdk.official import documents
from tests.sdk.official.probe import Observed, probe, row

if TYPE_CHECKING:
    from tests.sdk.official.side import Side


UNPUBLISHED = """
import os

os.environ["KUBEFLOW_SYSTEM_NAMESPACE"] = "nowhere"
TrainerClient().get_runtime("plain").name
"""


@probe(
    row("A.4.1", "the client finds the control plane's version", "yes"),
    row("A.4.1", "where that is not published", "a warning, and all works"),
    row("A.4.1", "a client and `list_runtimes()` send", "3 requests"),
    row("A.4.3", "`list_runtimes()`: torch, torchtune, MPI, plain", "torch, torchtune, mpi, plain"),
)
def lists_runtimes(side: Side) -> Observed:
    with side.another_sdk() as sdk:
        made = sdk.outcome("TrainerClient().list_runtimes()", bare=True)
        unpublished = sdk.outcome(UNPUBLISHED, bare=True)
    frameworks = {one["name"]: one["trainer"]["framework"] for one in made.value}
    found = [
        frameworks[name]
        for name in ("torch-distributed", "torchtune-qwen2.5-1.5b", "mpi", "plain")
        if name in frameworks
    ]
    kinds = {one["name"]: one["trainer"]["trainer_type"] for one in made.value}
    assert kinds["torchtune-qwen2.5-1.5b"] == "BuiltinTrainer"
    assert kinds["torch-distributed"] == "CustomTrainer"
    works = unpublished.value == "plain" and len(unpublished.warnings) == 1
    return (
        "no" if made.warnings else "yes",
        "a warning, and all works" if works else str(unpublished),
        f"{len(made.requests)} requests",
        ", ".join(found),
    )


@probe(
    row("A.1", "a namespace's runtime of the same name", "comes before the cluster's"),
    row("A.4.3", "a runtime without the framework's label", "is left out, with a warning"),
)
def reads_the_namespace_first(side: Side) -> Observed:
    home = side.elsewhere(
        documents.plain(namespace="?", framework="own"), documents.plain("bare", namespace="?", framework="")
    )
    listed = side.sdk.outcome("client.list_runtimes()", namespace=home.namespace)
    kinds = {one["name"]: one["kind"] for one in listed.value}
    read = side.sdk.run("client.get_runtime('plain')", namespace=home.namespace)
    own = kinds["plain"] == read["kind"] == "TrainingRuntime" and read["trainer"]["framework"] == "own"
    warned = any("bare" in line for line in listed.warnings)
    return (
        "comes before the cluster's" if own else "is not seen",
        "is left out, with a warning" if "bare" not in kinds and warned else "is listed",
    )


@probe(
    row("A.4.3", "one runtime without `mlPolicy`: `list_runtimes()`", "raises"),
    row("A.4.3", "one runtime whose limits are memory alone: `list_runtimes()`", "raises"),
    row("A.1", "`get_runtime()` of a name that is not there", "RuntimeError"),
)
def is_stopped_by_one_runtime(side: Side) -> Observed:
    bad = documents.plain("bad", namespace="?")
    del bad["spec"]["mlPolicy"]
    limited = documents.plain("limited", namespace="?")
    documents.pod(documents.jobs(limited)[0])["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    answers = []
    for runtime in (bad, limited):
        home = side.elsewhere(runtime)
        listed = side.sdk.outcome("client.list_runtimes()", namespace=home.namespace)
        answers.append("raises" if listed.error else f"lists {len(listed.value)}")
    return (*answers, side.sdk.raised("client.get_runtime('nowhere')").type)


@probe(
    row("A.1", "`get_runtime_packages()`", "prints the runtime's Python, and leaves nothing"),
    row("A.1", "`get_runtime_packages()` of torchtune", "ValueError"),
)
def looks_into_a_runtime(side: Side) -> Observed:
    home = side.elsewhere()
    cell = "client.get_runtime_packages(client.get_runtime('plain'))"
    packages = side.sdk.outcome(cell, namespace=home.namespace)
    assert packages.error is None, packages.error
    home.wait("the job of get_runtime_packages to go", lambda: not home.names("trainjobs"))
    refused = side.sdk.raised("client.get_runtime_packages(client.get_runtime('torchtune-qwen2.5-1.5b'))")
    printed = "Python: 3." in packages.printed
    return ("prints the runtime's Python, and leaves nothing" if printed else packages.printed, refused.type)
