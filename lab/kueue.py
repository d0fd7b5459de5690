"""Kueue on a cluster: its CRDs, its controller beside the API server, the webhooks of what it manages here.

It is the release that `LAB_KUEUE` chooses; what older ones do otherwise is read from their own CRDs.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import yaml

from lab.engines import binary, manifests
from lab.webhooks import beside, documents

if TYPE_CHECKING:
    from lab.cluster import Cluster

NAMESPACE = "kueue-system"
_WEBHOOK_PORT = 9443
_HEALTH_PORT = 8081
_CERTIFICATES = "/etc/kueue/metrics/certs"
"""Kueue reads its metrics certificate here whatever its configuration says; /etc is the sandbox's own."""

FRAMEWORKS = {
    "batch/job": "job",
    "jobset.x-k8s.io/jobset": "jobset",
    "trainer.kubeflow.org/trainjob": "trainjob",
    **{f"kubeflow.org/{kind}": kind for kind in ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob")},
}
"""Kueue's name of a framework → the stem of its webhooks' names."""
_CONVERTED = ("localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters")
"""Kinds whose versions differ by more than their names."""
_OWN_WEBHOOKS = ("clusterqueue", "resourceflavor", "workload", "cohort")


def install(cluster: Cluster, *, frameworks: tuple[str, ...] = ("batch/job",), **settings: Any) -> None:
    """Install Kueue and wait until it is ready; `settings` are merged into its Configuration.

    The CRDs of all `frameworks` must be there already: Kueue times out waiting for them.
    """
    install_crds(cluster)
    _let_convert(cluster)
    pair = cluster.webhook_pair
    script = f"mkdir -p {_CERTIFICATES} && cp {pair.certificate} {pair.key} {_CERTIFICATES}"
    cluster.sandbox.run(["sh", "-euc", script])
    config = cluster.folder / "kueue.yaml"
    config.write_text(yaml.safe_dump(_configuration(cluster, frameworks) | settings))
    cluster.start("kueue", [binary("kueue"), f"--config={config}", f"--kubeconfig={cluster.kubeconfig}"])
    wait_ready(cluster)
    shipped = documents(manifests("kueue") / "config/components/webhook/manifests.yaml")
    kept = {f"{verb}{stem}.kb.io" for verb in "mv" for stem in (*_OWN_WEBHOOKS, *(FRAMEWORKS[f] for f in frameworks))}
    configurations = beside(
        cluster, shipped, prefix="kueue", port=_WEBHOOK_PORT, keep=lambda webhook: webhook["name"] in kept
    )
    for configuration in configurations:
        for webhook in configuration["webhooks"]:
            _spare_system_namespaces(webhook)
    cluster.apply(*configurations)


def install_crds(cluster: Cluster) -> None:
    """Install the CRDs and Kueue's namespace alone: all that a hub needs on which nothing is dispatched."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    crds = documents(*sorted((manifests("kueue") / "config/components/crd/bases").glob("*.yaml")))
    cluster.apply(*crds)
    cluster.wait_established(*(crd["metadata"]["name"] for crd in crds))


def api_version() -> str:
    """Return the newest version that the chosen release speaks, of its objects and of its Configuration: `v1beta2`."""
    return max(_is_stored_by_version())


def _is_stored_by_version() -> dict[str, bool]:
    return {version["name"]: version["storage"] for version in _crd("localqueues")["spec"]["versions"]}


def _crd(plural: str) -> dict[str, Any]:
    (crd,) = documents(manifests("kueue") / f"config/components/crd/bases/kueue.x-k8s.io_{plural}.yaml")
    return crd


def _let_convert(cluster: Cluster) -> None:
    """Let Kueue translate objects if it stores an older version than it speaks, as its own manifests do.

    Where it stores what it speaks, nobody here asks for the older one.
    """
    if _is_stored_by_version()[api_version()]:
        return
    bundle = base64.b64encode(cluster.authority.read_bytes()).decode()
    client = {"url": f"https://127.0.0.1:{_WEBHOOK_PORT}/convert", "caBundle": bundle}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    for crd in map(_crd, _CONVERTED):
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        cluster.apply(crd)


def wait_ready(cluster: Cluster) -> None:
    """Wait until Kueue is ready, after a start or a `cluster.revive`."""
    cluster.wait_http("kueue", _HEALTH_PORT)


def reconfigure(cluster: Cluster, **settings: Any) -> dict[str, Any]:
    """Start Kueue anew with other settings, top-level keys each; return those that they replaced.

    None removes a key, so what was returned puts everything back.
    """
    config = cluster.folder / "kueue.yaml"
    before = yaml.safe_load(config.read_text())
    after = {key: value for key, value in (before | settings).items() if value is not None}
    config.write_text(yaml.safe_dump(after))
    if cluster.engines()["kueue"].process.alive():
        cluster.kill("kueue")
    cluster.revive("kueue")
    wait_ready(cluster)
    return {key: before.get(key) for key in settings}


def _spare_system_namespaces(webhook: dict[str, Any]) -> None:
    """Keep Kueue out of the namespaces that it and Kubernetes live in, as its own manifests do."""
    if any(stem in webhook["name"] for stem in _OWN_WEBHOOKS):
        return
    names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", NAMESPACE]}
    webhook["namespaceSelector"] = {"matchExpressions": [names]}


def _configuration(cluster: Cluster, frameworks: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": f"config.kueue.x-k8s.io/{api_version()}",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{_HEALTH_PORT}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": _WEBHOOK_PORT, "certDir": str(cluster.webhook_pair.key.parent)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "manageJobsWithoutQueueName": False,
        "clientConnection": {"qps": 500, "burst": 1000},
        "integrations": {"frameworks": list(frameworks)},
        "featureGates": {"VisibilityOnDemand": False},
    }


def queue(
    name: str, namespace: str, *, cpu: str, memory: str, checks: tuple[str, ...] = ()
) -> tuple[dict[str, Any], ...]:
    """Return a flavor, a ClusterQueue with that quota and a LocalQueue, all of one name."""
    api = f"kueue.x-k8s.io/{api_version()}"
    resources = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": memory}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": resources}]}
    spec: dict[str, Any] = {"namespaceSelector": {}, "resourceGroups": [group]}
    if checks:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return (
        {"apiVersion": api, "kind": "ResourceFlavor", "metadata": {"name": name}},
        {"apiVersion": api, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": name},
        },
    )
