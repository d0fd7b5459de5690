"""Keys by which the nodes of a job trust each other are the job's own, and nobody knows them who did not make them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.operator.test_operator import GROUP, runtime, train_job
from tests.security.live.tenancy import controlled_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.security.live.tenancy import Tenancy

Tree = dict[str, Any]

WHO, PRIZE = "a tenant who may leave Secrets in the namespace", "keys to the job's nodes that it knows"
FRAMEWORKS = {
    "mpi": ("job-mpi-ssh-auth", ("ssh-privatekey", "ssh-publickey")),
    "flux": ("job-flux-curve", ("curve.cert",)),
}
KNOWN = base64.b64encode(b"the attacker's").decode()


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def curated(tenancy: Tenancy, framework: str) -> Iterator[str]:
    """Return the name of a runtime with the framework, made for this test."""
    name = f"{framework}-{tenancy.namespace}"
    tree = runtime(name)
    tree["metadata"]["labels"] = {f"{GROUP}/framework": framework}
    tree["spec"]["mlPolicy"] = {"numNodes": 1, framework: {}}
    tenancy.cluster.apply(tree)
    yield name
    tenancy.cluster.kubectl("delete", "clustertrainingruntime", name, "--wait=false")


def secret(framework: str, *owners: Tree) -> Tree:
    name, keys = FRAMEWORKS[framework]
    data = dict.fromkeys(keys, KNOWN)
    meta = {"name": name, "ownerReferences": list(owners)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def contents(tenancy: Tenancy, framework: str) -> set[str]:
    return set(tenancy.wait("secret", FRAMEWORKS[framework][0])["data"].values())


@pytest.mark.attack(WHO, PRIZE)
def test_keys_planted_before_the_job(tenancy: Tenancy, framework: str, curated: str) -> None:
    tenancy.create(secret(framework))
    tenancy.create(train_job(tenancy.namespace, "job", runtime_name=curated))
    told = tenancy.told("job", FRAMEWORKS[framework][0])
    assert "is not controlled by this TrainJob" in told
    assert "delete it" in told
    assert tenancy.find("jobset", "job") is None
    tenancy.kubectl("delete", "secret", FRAMEWORKS[framework][0])
    tenancy.wait("jobset", "job")
    assert KNOWN not in contents(tenancy, framework)


@pytest.mark.attack(WHO, PRIZE)
def test_keys_planted_as_another_jobs(tenancy: Tenancy, framework: str, curated: str) -> None:
    other = tenancy.create(train_job(tenancy.namespace, "other", runtime_name=curated, suspend=True))
    tenancy.create(secret(framework, controlled_by(other)))
    tenancy.create(train_job(tenancy.namespace, "job", runtime_name=curated))
    tenancy.told("job", "is not controlled by this TrainJob")
    assert tenancy.find("jobset", "job") is None
