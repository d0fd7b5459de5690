"""The reference's releases: their CRDs, under their own group or moved to another so that all live side by side."""

from __future__ import annotations

from typing import Any

import yaml

from lab.engines import manifests

Manifest = dict[str, Any]

ENGINES = {"v2.0": "trainer-v2.0", "v2.1": "trainer-v2.1", "v2.2": "trainer-v2.2", "v2.3": "trainer"}
"""Release → engine of the lab whose module carries its CRDs."""

PLURALS = ("trainjobs", "trainingruntimes", "clustertrainingruntimes")


def crds(release: str) -> dict[str, Manifest]:
    """Return a release's CRDs by plural."""
    folder = manifests(ENGINES[release]) / "manifests" / "base" / "crds"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        plural: yaml.load((folder / f"trainer.kubeflow.org_{plural}.yaml").read_text(), loader)  # noqa: S506 safe
        for plural in PLURALS
    }


def schema(crd: Manifest) -> Manifest:
    """Return the schema of a CRD's one version."""
    (version,) = crd["spec"]["versions"]
    found: Manifest = version["schema"]["openAPIV3Schema"]
    return found


def group(release: str) -> str:
    """Return the group under which a release's CRDs are installed beside ours."""
    return f"{release.replace('.', '')}.example.test"


def moved(crd: Manifest, to: str) -> Manifest:
    """Return a CRD under another group, so that the API server judges by it without it being ours."""
    return {
        **crd,
        "metadata": {"name": f"{crd['spec']['names']['plural']}.{to}"},
        "spec": {**crd["spec"], "group": to},
    }


def jobset_crd() -> Manifest:
    """Return JobSet's CRD as its module ships it."""
    path = manifests("jobset") / "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    crd: Manifest = yaml.load(path.read_text(), loader)  # noqa: S506 safe
    return crd
