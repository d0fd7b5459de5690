"""The chart as it is published, which brings JobSet where an admin asks for it."""

from __future__ import annotations

import os
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy import package
from lab import chart, node
from lab.cluster import Cluster
from lab.engines import binary
from lab.helm import helm
from lab.images import single
from lab.processes import run
from tests.install.admin import CHART, NAMESPACE, RELEASE, Admin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITH_JOBSET = "--set=jobset.install=true"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())["jobset"]


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive that `make release` packs, too."""
    folder = tmp_path_factory.mktemp("chart")
    whole = package.assemble(CHART, folder / "trainplane", package.jobset())
    run([binary("helm"), "package", str(whole), "--destination", str(folder)])
    (found,) = folder.glob("*.tgz")
    return found


def rendered(packaged: Path, *options: str) -> list[dict[str, Any]]:
    words = [binary("helm"), "template", RELEASE, str(packaged), f"--namespace={NAMESPACE}", "--include-crds", *options]
    return [one for one in yaml.load_all(run(words).stdout, yaml.CSafeLoader) if one]


def test_jobset_comes_only_where_it_is_asked_for(packaged: Path) -> None:
    without = {(one["kind"], one["metadata"]["name"]) for one in rendered(packaged)}
    more = {(one["kind"], one["metadata"]["name"]) for one in rendered(packaged, WITH_JOBSET)} - without
    assert not [name for _, name in without if "jobset" in name]
    assert {("CustomResourceDefinition", "jobsets.jobset.x-k8s.io"), ("Deployment", "jobset-controller")} <= more
    assert all("jobset" in name for _, name in more)


def test_it_is_the_version_that_we_are_tested_with(packaged: Path) -> None:
    (jobset,) = (
        one
        for one in rendered(packaged, WITH_JOBSET)
        if one["kind"] == "Deployment" and one["metadata"]["name"] == "jobset-controller"
    )
    (container,) = jobset["spec"]["template"]["spec"]["containers"]
    with tarfile.open(packaged) as archive:
        member = archive.extractfile("trainplane/charts/jobset/Chart.yaml")
        assert member
        version = yaml.safe_load(member)["version"]
    assert container["image"] == f"registry.k8s.io/jobset/jobset:v{version}"


def test_an_api_server_takes_it(packaged: Path, cluster: Cluster) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE, check=False)
    text = yaml.dump_all(rendered(packaged, WITH_JOBSET), Dumper=yaml.CSafeDumper)
    strictly = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    cluster.kubectl("apply", *strictly, "-f", "-", stdin=text)


@pytest.fixture
def empty(archived: Path) -> Iterator[Admin]:
    """Return the admin of a cluster without JobSet, whose node has the image that JobSet publishes."""
    assert archived.exists()
    cluster = Cluster.up(f"jobset-{os.getpid()}", owned=True)
    try:
        node.install(cluster)
        node.give(cluster, "operator")
        name = f"{VALUES['image']['repository']}:{VALUES['image']['tag']}"
        archive = cluster.folder / "jobset.tar"
        single.write(archive, name, binary("jobset"))
        node.load(cluster, archive, name)
        yield Admin(cluster)
    finally:
        cluster.down()


@pytest.mark.full
def test_one_command_brings_all_that_a_job_needs(packaged: Path, empty: Admin) -> None:
    """Both sets of pods under Pod Security's `restricted`, and JobSet's own certificate and webhooks."""
    empty.make_namespace()
    options = (*chart.image_values(), WITH_JOBSET, f"--namespace={NAMESPACE}", "--wait", "--timeout=120s")
    helm(empty.cluster, "install", RELEASE, str(packaged), *options)
    empty.wait_answering()
    empty.add_runtime()
    empty.train("first")
    empty.uninstall()
    assert empty.has("crd", "jobsets.jobset.x-k8s.io")
    assert empty.has("jobset", "first")
