"""The reference trainer v2.3.0 on a cluster: the Go controller that ours is measured against and compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary, manifests
from lab.webhooks import beside, documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

NAMESPACE = "kubeflow-system"
CRDS = tuple(
    f"{plural}.trainer.kubeflow.org" for plural in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")
)
_WEBHOOK_PORT = 9445
_HEALTH_PORT = 8095


def install_crds(cluster: Cluster) -> None:
    """Install the reference's own CRDs."""
    folder = manifests("trainer") / "manifests/base/crds"
    cluster.apply(*documents(*sorted(folder.glob("trainer.kubeflow.org_*.yaml"))))
    cluster.wait_established(*CRDS)


def install(cluster: Cluster, *, qps: float | None = None, with_crds: bool = True, prefix: str = "reference") -> None:
    """Install the reference and wait until it is ready; `qps` lifts the limit of its client from the shipped one.

    `prefix` is that of its webhooks' names, in whose order the API server calls them.
    """
    if with_crds:
        install_crds(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    settings: dict[str, Any] = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": _WEBHOOK_PORT},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{_HEALTH_PORT}"},
        "certManagement": {"enable": False},
    }
    if qps is not None:
        settings["clientConnection"] = {"qps": qps, "burst": int(qps * 2)}
    config = cluster.folder / "reference.yaml"
    config.write_text(yaml.safe_dump(settings))
    # It reads its serving certificate from the usual temporary folder, which TMPDIR moves.
    temporary = cluster.folder / "reference-tmp"
    serving = temporary / "k8s-webhook-server/serving-certs"
    serving.mkdir(parents=True)
    for path in (cluster.webhook_pair.certificate, cluster.webhook_pair.key):
        (serving / path.name).write_bytes(path.read_bytes())
    command = [binary("trainer-controller-manager"), f"--config={config}", f"--kubeconfig={cluster.kubeconfig}"]
    cluster.start("reference", command, {"TMPDIR": str(temporary)})
    wait_ready(cluster)
    cluster.apply(*beside(cluster, webhooks(), prefix=prefix, port=_WEBHOOK_PORT))


def wait_ready(cluster: Cluster) -> None:
    """Wait until the reference is ready, after a start or a `cluster.revive`."""
    cluster.wait_http("reference", _HEALTH_PORT)


def webhooks() -> list[dict[str, Any]]:
    """Return the webhook configurations as the reference's kustomization makes them.

    Its patches are lists of JSON patch operations. Names and Services are replaced anyway by whoever installs them;
    what is added is the selector by which a runtime's label skips validation.
    """
    folder = manifests("trainer") / "manifests/base/webhook"
    configurations = {document["kind"]: document for document in documents(folder / "manifests.yaml")}
    operations = yaml.safe_load((folder / "patch_validating.yaml").read_text())
    validating = configurations["ValidatingWebhookConfiguration"]["webhooks"]
    for operation in operations:
        match operation["path"].split("/"):
            case ["", "webhooks", index, "objectSelector"]:
                validating[int(index)]["objectSelector"] = operation["value"]
    return list(configurations.values())


def runtime(name: str, image: str) -> dict[str, Any]:
    """Return a runtime that the reference ships, with an image that the lab has."""
    folder = manifests("trainer") / "manifests/base/runtimes"
    (document,) = documents(folder / f"{name.replace('-', '_')}.yaml")
    return with_image(document, image)


def with_image(runtime: dict[str, Any], image: str) -> dict[str, Any]:
    """Put an image that the lab has into every container of a runtime."""
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            container["image"] = image
            container["imagePullPolicy"] = "Never"
    return runtime
