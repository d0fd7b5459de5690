"""What admission lets through, the API server takes: fuzzed TrainJobs that were accepted are created, by dry run.

The real API server, with JobSet and its webhooks, judges what the runs of `tests/security/fuzz` judge in process: every
object that an accepted TrainJob renders to.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from lab import trainplane
from tests.refused_cases import ALLOWED, Case
from tests.security.fuzz.campaign import seed_of_run
from tests.security.fuzz.targets.reviews import NAMESPACE, Reviews
from tests.security.fuzz.worker import case
from tests.size import sized
from trainplane.api.document import read
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.pipeline import COMMON, FRAMEWORKS, Pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import Cluster
    from tests.suite import SuiteReport

Tree = dict[str, Any]

PIPELINE = Pipeline(plugin() for plugin in (*FRAMEWORKS, *COMMON))
WANTED = sized(40, full=400)
"""Accepted TrainJobs whose objects are sent."""
_GATED = "feature gate is disabled"
"""How JobSet says that its admin has not switched on what is asked for: with which gates it runs is not known to us."""
_JSON = {"Content-Type": "application/json"}
_PATHS = {
    "JobSet": "apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
}


class Server:
    """The API server, asked without a client of ours in between."""

    def __init__(self, cluster: Cluster) -> None:
        context = ssl.create_default_context(cafile=str(cluster.authority))
        context.load_cert_chain(cluster.folder / "pki/admin.crt", cluster.folder / "pki/admin.key")
        self._connection = http.client.HTTPSConnection("127.0.0.1", cluster.port, timeout=60, context=context)

    def create(self, path: str, tree: Tree) -> str:
        """Create an object by dry run; return why it is refused, empty if it is not."""
        self._connection.request("POST", f"/{path}?dryRun=All", json.dumps(tree), _JSON)
        response = self._connection.getresponse()
        answer = json.loads(response.read())
        return "" if response.status in {200, 201} else f"{response.status} {answer.get('message')}"

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[Server]:
    trainplane.install_crds(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    server = Server(cluster)
    yield server
    server.close()


@pytest.mark.timeout(600)
@pytest.mark.attack("a TrainJob's author", "a job that admission takes and that fails at every reconcile, for ever")
def test_what_is_accepted_can_be_applied(server: Server, report: SuiteReport) -> None:
    target, seed = Reviews(), seed_of_run()
    sent, number, refused = 0, 0, {}
    while sent < WANTED and number < 100 * WANTED:
        data = case(target, seed, number)
        number += 1
        if target.run(data) != "rendered":
            continue
        sent += 1
        for tree in target.accepted:
            path = _PATHS.get(tree["kind"])
            problem = server.create(path.format(NAMESPACE), _unowned(tree)) if path else ""
            if problem and _GATED not in problem:
                refused[number - 1] = f"{tree['kind']}: {problem}"
    target.close()
    report.row(fuzzed="accepted TrainJobs on the API server", cases=sent, refused=len(refused), seed=seed)
    assert sent == WANTED
    assert not refused, "\n".join(f"seed {seed} case {place}: {text}" for place, text in refused.items())


@pytest.mark.parametrize("case", ALLOWED, ids=str)
def test_jobset_takes_what_kubernetes_takes(server: Server, case: Case) -> None:
    """Its webhook writes the whole anew by Go's types, with nulls that its own schema refuses."""
    made = PIPELINE.render(read(case.job(NAMESPACE), TrainJob), read(case.runtime(), ClusterTrainingRuntime)).jobset
    assert server.create(_PATHS["JobSet"].format(NAMESPACE), _unowned(made.tree)) == ""


def _unowned(tree: Tree) -> Tree:
    """Return an object without its owner, who has no uid here."""
    metadata = {key: value for key, value in tree["metadata"].items() if key != "ownerReferences"}
    return {**tree, "metadata": metadata}
