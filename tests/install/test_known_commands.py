"""Commands that people know from the reference's documents, with our address in the place of theirs: docs/install.md.

The tests are steps of one story, after that of `test_install`, and run in order; the last ones take the CRDs away.
"""

from __future__ import annotations

import pytest

from lab import chart
from lab.helm import helm
from lab.images import trainplane
from lab.images.containerd_root import SOCKET
from lab.paths import REPOSITORY
from tests.fleet.guide.page import Page
from tests.install.admin import NAMESPACE, RELEASE, Admin, typed

PAGE = Page.load(REPOSITORY / "docs/install.md")
SECTION = "Commands that you know"
COMMANDS = [line for one in PAGE.commands() if one.section == SECTION for line in one.script.splitlines()]
PLACE = "kubeflow-system"
PUBLISHED = "ghcr.io/trainplane/operator:v0.1.0.dev0"
"""What manifests and chart name, until an admin names another."""


@pytest.fixture(scope="module")
def known(admin: Admin) -> Admin:
    """Return the admin of the cluster without any release, whose node has the image that manifests name."""
    for namespace in (NAMESPACE, "team-a-system"):
        helm(admin.cluster, "uninstall", RELEASE, f"--namespace={namespace}", "--ignore-not-found", "--wait")
    client = ["ctr", "--address", SOCKET, "--namespace", "k8s.io"]
    admin.cluster.sandbox.run([*client, "images", "tag", "--force", trainplane.name("operator"), PUBLISHED])
    return Admin(admin.cluster, namespace=PLACE)


def runtimes(admin: Admin) -> set[str]:
    return {one["metadata"]["name"] for one in admin.cluster.get("clustertrainingruntimes")["items"]}


def test_the_page_has_each_of_them() -> None:
    assert [command.split()[:2] for command in COMMANDS] == [["kubectl", "apply"]] * 3 + [["helm", "install"]]


def test_standalone_is_applied_as_training_operator_was(known: Admin) -> None:
    """Also by kubectl's older apply, which keeps a copy of each object in an annotation: our CRDs are small enough."""
    typed(known.cluster, COMMANDS[0])
    known.cluster.kubectl("rollout", "status", "deployment", "-n", PLACE, "--timeout=90s")
    known.wait_answering()
    known.add_runtime()
    known.train("by-kubectl")


@pytest.mark.full
def test_manager_and_runtimes_are_applied_over_it(known: Admin) -> None:
    typed(known.cluster, COMMANDS[1])
    typed(known.cluster, COMMANDS[2])
    assert {"torch-distributed", "deepspeed-distributed"} <= runtimes(known)


@pytest.mark.full
def test_what_was_applied_is_deleted_by_the_same_names(known: Admin) -> None:
    for overlay in ("runtimes", "manager"):
        known.cluster.kubectl("delete", "-k", str(REPOSITORY / "manifests/overlays" / overlay), "--timeout=60s")
    assert not known.has("crd", "trainjobs.trainer.kubeflow.org")


@pytest.mark.full
def test_helm_installs_under_the_reference_s_name(known: Admin) -> None:
    """On a cluster without the CRDs, the runtimes come when the same is said as an upgrade."""
    command = f"{COMMANDS[3]} {' '.join(chart.image_values())} --wait --timeout=120s"
    assert "Runtimes were left out" in typed(known.cluster, command)
    typed(known.cluster, command.replace("helm install", "helm upgrade").replace("--create-namespace ", ""))
    assert {"torch-distributed", "torchtune-llama3.2-1b"} <= runtimes(known)
    known.wait_answering()
    known.add_runtime()
    known.train("by-helm")
