"""Flux's scripts and certificate are our own, and judged by what they must say."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.compare import ABSENT
from tests.conformance.documents import container, replicated_job, runtime
from tests.conformance.flux_differences import _added, _scripts
from tests.conformance.planted import difference, explained_by
from trainplane.render.plugins.flux import _draw_certificate

if TYPE_CHECKING:
    from tests.conformance.cases import Tree
    from tests.conformance.compare import Difference

ON = runtime(replicated_job(), policy={"numNodes": 2, "flux": {"numProcPerNode": 1}})
TWO, NO_NODES = {"trainer": {"numNodes": 2}}, {"trainer": {"command": ["lmp"]}}
MAP, SECRET = "ConfigMap job-flux-entrypoint", "Secret job-flux-curve"
ABSENT_ONES = difference(MAP, "", ABSENT, {}, on=ON, spec=TWO)
SCRIPTS = _scripts(ABSENT_ONES.case)
ENTRY, INIT = SCRIPTS["entrypoint.sh"], SCRIPTS["init.sh"]
DRAWN = _draw_certificate("job")["data"]["curve.cert"]
OTHERS = _draw_certificate("other")["data"]["curve.cert"]


def _torn(certificate: str) -> str:
    """Return a certificate whose keys are no pair."""
    lines = base64.b64decode(certificate).decode().splitlines(keepends=True)
    stranger = base64.b64decode(_draw_certificate("job")["data"]["curve.cert"]).decode().splitlines(keepends=True)
    return base64.b64encode("".join([*lines[:-1], stranger[-1]]).encode()).decode()


def found(place: str, path: str, reference: Any, ours: Any, spec: Tree = TWO) -> Difference:
    return difference(place, path, reference, ours, on=ON, spec=spec)


@pytest.mark.parametrize(
    ("known", "by"),
    [
        (found(MAP, "data.entrypoint.sh", "theirs", ENTRY), "flux-scripts"),
        (found(MAP, "data.init.sh", "theirs", INIT), "flux-scripts"),
        (found(MAP, "data.entrypoint.sh", "theirs", ""), None),
        (found(MAP, "data.entrypoint.sh", "theirs", ENTRY[:-20]), None),
        (found(MAP, "data.entrypoint.sh", "theirs", ENTRY.replace("-N 2", "-N 3")), None),
        (found(MAP, "data.init.sh", "theirs", INIT.replace("port=8050", "port=1")), None),
        (found(MAP, "data.init.sh", "theirs", ENTRY), None),
        (found(MAP, "data.init.sh", ABSENT, INIT), None),
        (found(SECRET, "data.curve.cert", "dGhlaXJz", DRAWN), "flux-drawn-key"),
        (found(SECRET, "data.curve.cert", "dGhlaXJz", ABSENT), None),
        (found(SECRET, "data.curve.cert", "dGhlaXJz", ""), None),
        (found(SECRET, "data.curve.cert", "dGhlaXJz", OTHERS), None),
        (found(SECRET, "data.curve.cert", "dGhlaXJz", _torn(DRAWN)), None),
        (found(SECRET, "owned", {}, ABSENT), "flux-drawn-key"),
        (found(MAP, "", ABSENT, {"data": SCRIPTS}, NO_NODES), "flux-without-nodes"),
        (found(MAP, "", ABSENT, {"data": {**SCRIPTS, "init.sh": ""}}, NO_NODES), None),
        (found(MAP, "", ABSENT, {"data": SCRIPTS}), None),
        (found(SECRET, "", ABSENT, {"data": {"curve.cert": DRAWN}}, NO_NODES), "flux-without-nodes"),
        (found(SECRET, "", ABSENT, {"data": {}}, NO_NODES), None),
    ],
)
def test_scripts_and_keys_are_judged_by_the_case(known: Difference, by: str | None) -> None:
    assert explained_by(known) == by


ARGS = "spec.replicatedJobs[node].template.spec.template.spec.containers[node].args"
WORDED = runtime(replicated_job(containers=[container(args=["a"])]), policy={"flux": {}})


@pytest.mark.parametrize(
    ("reference", "ours", "on", "known"),
    [
        (["a"], ABSENT, WORDED, True),
        (["b"], ABSENT, WORDED, False),
        (["a"], ["b"], WORDED, False),
        (["a"], ABSENT, ON, False),
    ],
)
@pytest.mark.parametrize("spec", [TWO, {"trainer": {"numNodes": 2, "args": ["c"]}}])
def test_args_of_the_runtime_go_into_the_command(reference: Any, ours: Any, on: Tree, known: bool, spec: Tree) -> None:
    assert explained_by(difference("JobSet job", ARGS, reference, ours, on=on, spec=spec)) == (
        "flux-words" if known else None
    )


WORKER = runtime(replicated_job("worker"), policy={"flux": {}})
POD = "spec.replicatedJobs[worker].template.spec.template.spec"
MINE = {"name": "mine", "emptyDir": {}}
ADDED = _added(difference(MAP, "", ABSENT, {}, on=WORKER, spec=TWO).case)
OWNED = POD.replace("spec.replicatedJobs[worker]", 'f:spec.f:replicatedJobs.k:{"name":"worker"}').replace(
    ".template.spec", ".f:template.f:spec"
)


@pytest.mark.parametrize(
    ("path", "reference", "ours", "known"),
    [
        (f"{POD}.volumes", ABSENT, ADDED["volumes"], True),
        (f"{POD}.volumes", [MINE], [MINE, *ADDED["volumes"]], True),
        (f"{POD}.volumes", [MINE], ADDED["volumes"], False),
        (f"{POD}.volumes", ABSENT, [MINE, *ADDED["volumes"]], False),
        (f"{POD}.volumes", ABSENT, ADDED["volumes"][1:], False),
        (f"{POD}.volumes", ABSENT, ABSENT, False),
        (f"{POD}.containers[node].volumeMounts", ABSENT, ADDED["volumeMounts"], True),
        (f"{POD}.containers[side].volumeMounts", ABSENT, ADDED["volumeMounts"], False),
        (f"{POD}.initContainers", [{"name": "a"}], [{"name": "a", "tty": False}, *ADDED["initContainers"]], True),
        (f"{POD}.initContainers", [{"name": "a"}], [{"name": "a", "tty": True}, *ADDED["initContainers"]], False),
        (f'owned.{OWNED}.f:volumes.k:{{"name":"flux-curve"}}', ABSENT, {}, True),
        (f'owned.{OWNED}.f:volumes.k:{{"name":"mine"}}', ABSENT, {}, False),
        (f'owned.{OWNED}.f:volumes.k:{{"name":"flux-curve"}}', {}, ABSENT, False),
    ],
)
def test_flux_is_set_up_where_the_job_has_another_name(path: str, reference: Any, ours: Any, known: bool) -> None:
    found = difference("JobSet job", path, reference, ours, on=WORKER, spec=TWO)
    assert explained_by(found) == ("flux-any-job" if known else None)
    called = runtime(replicated_job("node"), policy={"flux": {}})
    renamed = path.replace("worker", "node")
    assert explained_by(difference("JobSet job", renamed, reference, ours, on=called, spec=TWO)) is None


@pytest.mark.parametrize(
    ("suspend", "conditions", "known"),
    [
        (True, [{"type": "Suspended", "status": "True"}], True),
        (True, [], False),
        (False, [{"type": "Suspended", "status": "True"}], False),
        (True, [{"type": "Failed", "status": "True"}], False),
    ],
)
def test_a_job_that_breaks_the_reference_has_a_status(suspend: bool, conditions: list[Tree], known: bool) -> None:
    spec = {**NO_NODES, "suspend": suspend}
    found = difference(
        "TrainJob job", "status", ABSENT, {"conditions": conditions, "phase": "Suspended"}, on=ON, spec=spec
    )
    assert explained_by(found) == ("flux-without-nodes" if known else None)
