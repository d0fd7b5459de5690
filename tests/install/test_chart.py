"""The chart as Helm renders it: accepted by a real API server, and the same objects as kustomize's."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy import kustomize
from deploy.chart import RUNTIMES
from lab import certmanager, prometheus, trainplane
from lab.engines import binary
from lab.errors import CommandError
from lab.paths import REPOSITORY
from lab.processes import run
from tests.install import schemas
from tests.install.admin import CHART, NAMESPACE
from trainplane.api.configuration import LEGACY_KINDS
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.api.legacy.names import DEFAULTER, VALIDATOR
from trainplane.api.legacy.names import GROUP as LEGACY_GROUP
from trainplane.operator import settings

if TYPE_CHECKING:
    from lab.cluster import Cluster

Tree = dict[str, Any]
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
(EVERYTHING,) = (path for path in VALUES if path.stem == "everything")
(NAMESPACED,) = (path for path in VALUES if path.stem == "namespaced")
KNOWN = "--api-versions=trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime"


def rendered(*options: str, release: str = "trainplane", namespace: str = NAMESPACE) -> list[Tree]:
    text = run([binary("helm"), "template", release, str(CHART), f"--namespace={namespace}", *options]).stdout
    return documents_of(text)


def documents_of(text: str) -> list[Tree]:
    """Return the objects of a text; by the C loader, for CRDs are long."""
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def by_name(documents: list[Tree]) -> dict[tuple[str, str], Tree]:
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def manager(documents: list[Tree]) -> Tree:
    """Return the spec of the operator's pods."""
    (found,) = (
        one
        for one in documents
        if one["kind"] == "Deployment" and one["metadata"]["name"].endswith("-controller-manager")
    )
    spec: Tree = found["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """Return an API server that knows every kind that the chart can make, and the namespaces that its objects name."""
    trainplane.install_crds(cluster)
    prometheus.install_crds(cluster)
    certmanager.install_crds(cluster)
    for name in (NAMESPACE, "kueue-system", "mpi", "flux", "team-a"):
        cluster.kubectl("create", "namespace", name)
    return cluster


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "defaults")
def test_an_api_server_takes_what_is_rendered(crds: Cluster, values: Path | None, tmp_path: Path) -> None:
    options = (f"--values={values}",) if values else ()
    run([binary("helm"), "lint", "--strict", str(CHART), *options])
    documents = rendered(*options, KNOWN)
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    crds.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
    (config,) = (one["data"] for one in documents if one["metadata"]["name"].endswith("-config"))
    file = tmp_path / "config.yaml"
    file.write_text(config["controller_manager_config.yaml"])
    settings.load(str(file))


@pytest.fixture(scope="session")
def kinds(crds: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the schemas of that API server."""
    folder = tmp_path_factory.mktemp("schemas")
    assert schemas.write(crds, folder) > 100
    return folder


@pytest.mark.full
@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "defaults")
def test_kubeconform_takes_what_is_rendered(kinds: Path, values: Path | None) -> None:
    documents = rendered(*((f"--values={values}",) if values else ()), KNOWN)
    assert _conform(kinds, documents) == []


@pytest.mark.full
def test_kubeconform_refuses_what_is_misspelt(kinds: Path) -> None:
    """Also deep inside, and in kinds of others: what it takes means something."""
    found = by_name(rendered(f"--values={EVERYTHING}", "--set=certManager.enabled=true"))
    wrong = [one for key, one in found.items() if key[0] in {"Deployment", "ServiceMonitor", "Certificate"}]
    for one in wrong:
        deepest = one["spec"].get("template", {}).get("spec", one["spec"])
        deepest["misspelt"] = True
    told = _conform(kinds, wrong)
    assert len(told) == len(wrong) == 5
    assert all("additional properties 'misspelt' not allowed" in one for one in told)


def _conform(kinds: Path, documents: list[Tree]) -> list[str]:
    """Return what kubeconform says against objects, with no schema but these: it asks no network."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    options = ("-strict", "-output=json", f"-schema-location={kinds}/{schemas.LOCATION}")
    told = json.loads(run([binary("kubeconform"), *options, "-"], stdin=text, check=False).stdout)
    return [f"{one['kind']} {one['name']}: {one['msg']}" for one in told["resources"]]


def test_the_chart_and_kustomize_install_the_same(crds: Cluster) -> None:
    options = ("--set=fullnameOverride=kubeflow-trainer", "--set=runtimes.defaultEnabled=true", KNOWN)
    chart = by_name(
        [_comparable(one) for one in rendered(*options, release="kubeflow-trainer", namespace="kubeflow-system")]
    )
    overlays = []
    for name in ("manager", "runtimes"):
        text = crds.kubectl("kustomize", str(REPOSITORY / "manifests/overlays" / name)).stdout
        overlays += [_comparable(document) for document in documents_of(text)]
    namespace = ("Namespace", "kubeflow-system")
    assert chart == {key: one for key, one in by_name(overlays).items() if key != namespace}


def test_manifests_are_what_the_chart_renders() -> None:
    stale = [str(path) for path, text in kustomize.files().items() if (REPOSITORY / path).read_text() != text]
    assert stale == [], "run `make kustomize` and commit what it writes"


def test_each_runtime_has_a_switch_of_its_own() -> None:
    chosen = ("torch-distributed", "flux-distributed", "torchtune-qwen2.5-1.5b")
    documents = rendered(*(f"--set=runtimes.{RUNTIMES[name]}.enabled=true" for name in chosen), KNOWN)
    names = [one["metadata"]["name"] for one in documents if one["kind"] == "ClusterTrainingRuntime"]
    assert sorted(names) == sorted(chosen)
    assert len(set(RUNTIMES.values())) == len(RUNTIMES)


def test_runtimes_wait_for_their_crd() -> None:
    kinds = {one["kind"] for one in rendered("--set=runtimes.defaultEnabled=true")}
    assert "ClusterTrainingRuntime" not in kinds
    assert "CustomResourceDefinition" in kinds


def test_images_of_runtimes_may_be_replaced() -> None:
    found = by_name(rendered(f"--values={EVERYTHING}", KNOWN))
    assert "image: example.com/deepspeed:v1" in yaml.safe_dump(found["ClusterTrainingRuntime", "deepspeed-distributed"])
    tuned = yaml.safe_dump(found["ClusterTrainingRuntime", "torchtune-llama3.2-1b"])
    assert "image: torchtune:v2.3.0" in tuned
    assert "image: mirror.example.com/initializers:v9" in tuned
    settings = found["ConfigMap", "trainplane-config"]["data"]["controller_manager_config.yaml"]
    assert yaml.safe_load(settings)["output"] == {"image": "mirror.example.com/initializers:v9"}


def test_crds_outlive_the_release() -> None:
    crds = [one for one in rendered() if one["kind"] == "CustomResourceDefinition"]
    assert len(crds) == 3
    assert all(one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for one in crds)


def test_nothing_of_older_kinds_comes_unasked() -> None:
    """A cluster may have the operators that they are of: ours would take their place."""
    text = yaml.dump_all(rendered(), Dumper=yaml.CSafeDumper)
    assert not any(f"{plural}.{LEGACY_GROUP}" in text for plural in LEGACY_KINDS)
    assert DEFAULTER not in text
    assert f"- {LEGACY_GROUP}\n" not in text


@pytest.mark.parametrize("plural", LEGACY_KINDS)
def test_an_older_kind_comes_with_its_crd_webhooks_and_rights_and_no_other(plural: str) -> None:
    found = by_name(rendered(f"--set=manager.config.legacy.kinds={{{plural}}}"))
    others = {f"{one}.{LEGACY_GROUP}" for one in LEGACY_KINDS}
    assert {name for kind, name in found if kind == "CustomResourceDefinition"} & others == {f"{plural}.{LEGACY_GROUP}"}
    webhooks = [
        rule["resources"]
        for (kind, name), one in found.items()
        if kind.endswith("WebhookConfiguration") and name in {DEFAULTER, VALIDATOR}
        for webhook in one["webhooks"]
        for rule in webhook["rules"]
    ]
    assert webhooks == ([[plural]] * 2 if plural in BY_PLURAL else [])
    rules = found["ClusterRole", "trainplane-controller-manager"]["rules"]
    named = {one for rule in rules if rule["apiGroups"] == [LEGACY_GROUP] for one in rule["resources"]}
    assert {plural, f"{plural}/status"} <= named
    services = {verb for rule in rules if "services" in rule["resources"] for verb in rule["verbs"]}
    assert services == {"create", "list", "patch", "watch"} | ({"delete", "get"} if plural in BY_PLURAL else set())


def test_a_release_with_every_older_kind_fits_into_its_secret() -> None:
    """Helm keeps the whole chart and all that it rendered, compressed, in a Secret, which takes 1 MiB."""
    kept = {str(path): base64.b64encode(path.read_bytes()).decode() for path in CHART.rglob("*") if path.is_file()}
    (values,) = (path for path in VALUES if path.stem == "legacy")
    text = yaml.dump_all(rendered(f"--values={values}"), Dumper=yaml.CSafeDumper)
    assert len(base64.b64encode(gzip.compress(json.dumps([kept, text]).encode()))) < 800 * 1024  # JobSet's goes with it


def test_who_converts_mpijobs_is_trusted_by_cert_manager() -> None:
    options = ("--set=manager.config.legacy.kinds={mpijobs}", "--set=certManager.enabled=true")
    found = by_name(rendered(*options, release="other", namespace="elsewhere"))
    crd = found["CustomResourceDefinition", f"mpijobs.{LEGACY_GROUP}"]
    service = crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert service["namespace"] == "elsewhere"
    assert ("Service", service["name"]) in found
    assert crd["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].startswith("elsewhere/")


def test_with_cert_manager_the_operator_writes_no_webhook() -> None:
    documents = rendered("--set=certManager.enabled=true")
    resources = [rule["resources"] for one in documents for rule in one.get("rules", []) if "resources" in rule]
    assert ["validatingwebhookconfigurations"] not in resources
    (volume,) = (one for one in manager(documents)["volumes"] if one["name"] == "certificates")
    assert volume["secret"]["secretName"] == "trainplane-webhook-cert"
    webhooks = [one for one in documents if one["kind"].endswith("WebhookConfiguration")]
    assert len(webhooks) == 2
    injected = {one["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] for one in webhooks}
    assert injected == {f"{NAMESPACE}/trainplane-webhook-cert"}


def test_an_operator_of_one_namespace_has_no_cluster_role() -> None:
    documents = rendered(f"--values={NAMESPACED}")
    assert not [one for one in documents if one["kind"].startswith("ClusterRole")]
    webhooks = [one for document in documents for one in document.get("webhooks", [])]
    assert {one["rules"][0]["resources"][0] for one in webhooks} == {"trainjobs", "trainingruntimes"}
    places = [one["namespaceSelector"]["matchLabels"] for one in webhooks]
    assert all(place == {"kubernetes.io/metadata.name": "team-a"} for place in places)
    assert "--watch-namespace=team-a" in manager(documents)["containers"][0]["args"]


def test_an_operator_of_one_namespace_takes_progress_with_one_right_on_the_cluster() -> None:
    documents = rendered(f"--values={NAMESPACED}", "--set=manager.config.featureGates.TrainJobStatus=true")
    (role,) = (one for one in documents if one["kind"] == "ClusterRole")
    assert role["rules"] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}
    ]
    (binding,) = (one for one in documents if one["kind"] == "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    configuration = next(one for one in documents if one["metadata"]["name"] == "trainplane-config")["data"]
    assert "TrainJobStatus: true" in configuration["controller_manager_config.yaml"]
    ports = [port["name"] for one in documents if one["kind"] == "Service" for port in one["spec"]["ports"]]
    assert "status-server" in ports


def test_secrets_may_be_kept_to_namespaces() -> None:
    bindings = [
        one for one in rendered(f"--values={EVERYTHING}") if one["metadata"]["name"].endswith("-manager-secrets")
    ]
    found = [(one["kind"], one["metadata"].get("namespace")) for one in bindings if one["kind"].endswith("Binding")]
    assert found == [("RoleBinding", "mpi"), ("RoleBinding", "flux")]


def test_every_pod_is_restricted() -> None:
    documents = rendered("--set=hub.enabled=true")
    pods = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Deployment"]
    assert len(pods) == 3
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert not container["securityContext"]["allowPrivilegeEscalation"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--set=manager.replica=2", "additional properties 'replica' not allowed"),
        ("--set=manager.config.webhook.prot=1", "additional properties 'prot' not allowed"),
        ("--set=runtimes.torchDistributed.image.tag=v1", "additional properties 'image' not allowed"),
        (
            "--set=manager.watchNamespace=a",
            "manager.watchNamespace: an operator of one namespace may not write webhook",
        ),
        (
            '--set-json=manager.config.metrics.bindAddress="0",prometheusRule.enabled=true',
            "prometheusRule.enabled: reads metrics, which manager.config.metrics.bindAddress turns off",
        ),
        ("--set=manager.config.legacy.kinds={pytorchjob}", "value must be one of 'pytorchjobs'"),
        (
            "--set=manager.watchNamespace=a,manager.config.legacy.kinds={v2alpha1clustertrainingruntimes}",
            "manager.config.legacy.kinds: v2alpha1clustertrainingruntimes are for all namespaces",
        ),
        ("--set=jobset.install=true", "jobset.install: this folder has no JobSet in it"),
    ],
)
def test_what_cannot_be_is_refused_and_named(option: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        rendered(option)


def _comparable(document: Tree) -> Tree:
    """Return an object without what only Helm's or kustomize's says."""
    kustomize.plain(document)
    meta = document["metadata"]
    (meta.get("annotations") or {}).pop("helm.sh/resource-policy", None)
    if document["kind"].endswith("WebhookConfiguration"):
        meta.pop("labels", None)
    return {**document, "metadata": {key: value for key, value in meta.items() if value}}
