"""docs/versions.md names the versions that the lab builds, all of them and no others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lab.engines import ENGINES, KUBERNETES_VERSION, OTHERS
from tests.seeds.versions.matrix import MATRIX
from trainplane.kube.version import oldest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/versions.md").read_text()
PINNED = {
    folder: version for version, folder in re.findall(r"^\|[^|]*\| (\S+) \| `lab/engines/(\S+)` \|", PAGE, re.MULTILINE)
}
MODULES = {
    "kubernetes": "k8s.io/kubernetes",
    "etcd": "go.etcd.io/etcd/server/v3",
    "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
    "jobset": "sigs.k8s.io/jobset",
    "kueue": "sigs.k8s.io/kueue",
    "training-operator": "github.com/kubeflow/training-operator",
    "training-operator-oracle": "github.com/kubeflow/training-operator",
    "mpi-operator-oracle": "github.com/kubeflow/mpi-operator",
    "scheduler-plugins": "sigs.k8s.io/scheduler-plugins",
    "volcano": "volcano.sh/volcano",
    "prometheus-operator": "github.com/prometheus-operator/prometheus-operator",
    "cert-manager": "github.com/cert-manager/cert-manager",
}
TRIED = re.findall(r"^\| v(\d+\.\d+)\.\d+ \| v(\S+) \| v(\S+) \|", PAGE, re.MULTILINE)
TOOLS = {"pause", "coredns", "kwok", "helm", "prometheus", "kubeconform", "versitygw", "fake-gcs-server"}
"""Engines that a cluster of the lab needs or tests use, and a user's need not be of any version."""


@pytest.mark.parametrize("engine", PINNED)
def test_the_version_is_the_lab_s(engine: str) -> None:
    module = MODULES.get(engine, "github.com/kubeflow/trainer/v2")
    text = (ROOT / f"lab/engines/{engine}/go.mod").read_text()
    assert re.findall(rf"^(?:require|\t)\s*{re.escape(module)} (v\S+)", text, re.MULTILINE) == [PINNED[engine]]


def test_every_engine_is_named_or_a_tool() -> None:
    assert PINNED.keys() == ENGINES.keys() - TOOLS
    assert PINNED["kubernetes"] == KUBERNETES_VERSION
    assert PINNED["etcdutl"] == PINNED["etcd"]


def test_the_combinations_are_those_that_are_tried() -> None:
    assert [tuple(row) for row in TRIED] == [(one.kubernetes, one.kueue, one.jobset) for one in MATRIX]


def test_every_other_release_of_the_lab_is_tried() -> None:
    for engine, releases in OTHERS.items():
        assert releases.keys() <= {getattr(one, engine) for one in MATRIX}


def test_the_oldest_kubernetes_is_the_operators_and_the_charts() -> None:
    assert f"**Kubernetes older than {oldest()[1:]} is refused**" in PAGE
    assert f'kubeVersion: ">={oldest()[1:]}.0-0"' in (ROOT / "charts/trainplane/Chart.yaml").read_text()
    assert f"Kubernetes {oldest()[1:]} or newer" in (ROOT / "docs/install.md").read_text()


def test_the_official_sdk_and_python_are_those() -> None:
    assert f"kubeflow=={cell('requirements/official.in')}" in (ROOT / "requirements/official.in").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={cell('pyproject.toml')}"


def cell(pinned_in: str) -> str:
    (found,) = re.findall(rf"^\|[^|]*\| (\S+) \| `{re.escape(pinned_in)}` \|", PAGE, re.MULTILINE)
    return str(found)


def test_what_kueue_carries_is_said() -> None:
    text = (ROOT / "lab/engines/kueue/go.mod").read_text()
    (carried,) = re.findall(r"^\tgithub.com/kubeflow/trainer/v2 (v\S+)", text, re.MULTILINE)
    assert f"carries the reference's\ncode of {carried}" in PAGE


def test_security_promises_the_same() -> None:
    assert "Before 1.0 there are no back-ports" in (ROOT / "SECURITY.md").read_text()
    assert "Before 1.0 nothing is back-ported" in PAGE
