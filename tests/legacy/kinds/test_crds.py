"""CRDs of the older kinds beside those of their operators: structurally the same, and in our own words."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from lab.engines import manifests
from tests.schema_differences import ABSENT, differences, narrowings
from trainplane.api.crds.emit import crd
from trainplane.api.crds.legacy import KINDS
from trainplane.api.legacy.kinds import BY_PLURAL, MPI

Manifest = dict[str, Any]

OURS = {kind.plural: crd(kind) for kind in KINDS if kind.plural in BY_PLURAL}

NEWER = {
    *(
        f"{containers}[].{field}"
        for containers in ("containers", "initContainers", "ephemeralContainers")
        for field in ("env[].valueFrom.fileKeyRef", "lifecycle.stopSignal", "restartPolicyRules")
    ),
    "hostnameOverride",
    "resources",
    "schedulingGroup",
    "securityContext.seLinuxChangePolicy",
    "volumes[].projected.sources[].podCertificate",
}
"""Fields of a pod that came to Kubernetes after these operators were built."""
GONE = {"workloadRef"}
"""What Kubernetes 1.35 had in a pod for gangs and 1.36 has not: an API server of today drops it from pods."""


def theirs() -> dict[tuple[str, str], Manifest]:
    """Return the old operators' CRDs by plural and version."""
    found = {}
    for engine, folder in (
        ("training-operator-oracle", "manifests/base/crds"),
        ("mpi-operator-oracle", "manifests/base"),
    ):
        for path in (manifests(engine) / folder).glob("kubeflow.org_*.yaml"):
            one = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 safe
            (version,) = one["spec"]["versions"]
            found[one["spec"]["names"]["plural"], version["name"]] = one
    return found


THEIRS = theirs()
SERVED = sorted(THEIRS)


def version_of(manifest: Manifest, name: str) -> Manifest:
    """Return one version of a CRD."""
    (found,) = (version for version in manifest["spec"]["versions"] if version["name"] == name)
    return dict(found)


def schema_of(manifest: Manifest, name: str) -> Manifest:
    """Return the schema of one version of a CRD."""
    schema: Manifest = version_of(manifest, name)["schema"]["openAPIV3Schema"]
    return schema


def in_pod(path: str) -> str:
    """Return a path within the spec of a pod template; empty if it is somewhere else."""
    return path.partition("{}.template.spec.")[2]


def test_every_kind_of_theirs_is_ours_in_every_version() -> None:
    assert (
        sorted(
            (plural, version["name"]) for plural, manifest in OURS.items() for version in manifest["spec"]["versions"]
        )
        == SERVED
    )


@pytest.mark.parametrize(("plural", "version"), SERVED)
def test_the_schema_is_theirs_but_for_newer_fields_of_pods(plural: str, version: str) -> None:
    found = differences(schema_of(OURS[plural], version), schema_of(THEIRS[plural, version], version))
    unexplained = [
        one
        for one in found
        if one.key != "property" or in_pod(one.path) not in (NEWER if one.theirs == ABSENT else GONE)
    ]
    assert unexplained == []


@pytest.mark.parametrize(("plural", "version"), SERVED)
def test_what_they_take_is_taken(plural: str, version: str) -> None:
    found = narrowings(schema_of(OURS[plural], version), schema_of(THEIRS[plural, version], version))
    assert [one for one in found if in_pod(one.path) not in GONE] == []


def test_no_excuse_is_out_of_date() -> None:
    found = {
        in_pod(one.path)
        for plural, version in SERVED
        for one in differences(schema_of(OURS[plural], version), schema_of(THEIRS[plural, version], version))
    }
    assert found == NEWER | GONE


@pytest.mark.parametrize(("plural", "version"), SERVED)
def test_names_scope_and_subresources_are_theirs(plural: str, version: str) -> None:
    ours, old = OURS[plural], THEIRS[plural, version]
    for part in ("group", "names", "scope"):
        assert ours["spec"][part] == old["spec"][part]
    assert version_of(ours, version)["subresources"] == version_of(old, version)["subresources"]
    assert ours["metadata"]["name"] == old["metadata"]["name"]


@pytest.mark.parametrize(("plural", "version"), SERVED)
def test_kubectl_get_shows_their_columns(plural: str, version: str) -> None:
    """MPIJobs of v2beta1 have none with mpi-operator, and have those of the others here."""
    columns = version_of(THEIRS[plural, version], version).get("additionalPrinterColumns")
    shown = version_of(OURS[plural], version)["additionalPrinterColumns"]
    assert shown == columns or (columns is None and {one["name"] for one in shown} == {"State", "Age"})


def test_an_mpijob_is_stored_in_one_version_and_converted_to_the_other() -> None:
    spec = OURS[MPI.plural]["spec"]
    assert {one["name"]: one["storage"] for one in spec["versions"]} == {"v2beta1": True, "v1": False}
    assert spec["conversion"]["strategy"] == "Webhook"
    assert all("conversion" not in one["spec"] for plural, one in OURS.items() if plural != MPI.plural)


def test_each_fits_into_the_annotation_of_a_plain_apply() -> None:
    """Theirs do not, for their descriptions: client-side `kubectl apply` keeps at most 256 KiB in an annotation."""
    for manifest in OURS.values():
        assert len(json.dumps(manifest)) < 200 * 1024
    assert all(len(json.dumps(one)) > 256 * 1024 for one in THEIRS.values())


def words(schema: Any) -> set[str]:
    """Return every sentence of a schema: descriptions and what rules say."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema[key] for key in ("description", "message") if isinstance(schema.get(key), str)}
    return own.union(*map(words, schema.values()))


def test_every_sentence_is_our_own() -> None:
    said = set().union(*map(words, THEIRS.values()))
    assert len(said) > 500
    assert set().union(*map(words, OURS.values())) & said == set()
