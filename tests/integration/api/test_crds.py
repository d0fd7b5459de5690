"""Our CRDs beside the reference's: the core is the same, and what differs is what docs/conformance.md says."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.api import releases
from tests.schema_differences import differences, narrowings
from trainplane.api.crds.emit import KINDS, crd
from trainplane.api.crds.generate import OUTPUT, generate, render
from trainplane.operator.status import ADDED

if TYPE_CHECKING:
    from tests.integration.api.conftest import Server

CONFORMANCE = (Path(__file__).parents[3] / "docs" / "conformance.md").read_text()
OURS = {kind.plural: crd(kind) for kind in KINDS}

OLDER_FIELDS = {
    "spec.annotations",
    "spec.labels",
    "spec.mlPolicy.torch.elasticPolicy",
    "spec.mlPolicy.torch.numProcPerNode",
    "spec.podSpecOverrides",
    "spec.podTemplateOverrides",
}
"""Fields of v2.0 and v2.1 that v2.3 does not have and we do."""

ADDED_FIELDS = {f"status.{name}" for name in ADDED} | {"spec.runPolicy"}
"""Fields that no release of the reference has."""

OTHER_DIFFERENCES = {
    "spec.initializer.dataset.env": {"maxItems"},
    "spec.initializer.model.env": {"maxItems"},
    "spec.mlPolicy": {"x-kubernetes-validations"},
    "spec.mlPolicy.mpi.mpiImplementation": {"enum"},
    "spec.mlPolicy.numNodes": {"maximum"},
    "spec.runtimeRef": {"x-kubernetes-validations"},
    "spec.template.spec.volumeClaimPolicies[]": {"required", "x-kubernetes-validations"},
    "spec.template.spec.volumeClaimPolicies[].templates[]": {"required"},
    "spec.template.spec.volumeClaimPolicies[].templates[].metadata.namespace": {"x-kubernetes-validations"},
    "spec.trainer": {"x-kubernetes-validations"},
    "spec.trainer.args": {"maxItems", "x-kubernetes-validations"},
    "spec.trainer.command": {"maxItems", "x-kubernetes-validations"},
    "spec.trainer.env": {"maxItems", "x-kubernetes-validations"},
    "spec.trainer.image": {"x-kubernetes-validations"},
    "spec.trainer.numNodes": {"maximum", "x-kubernetes-validations"},
    "spec.trainer.numProcPerNode": {
        "anyOf",
        "format",
        "maximum",
        "minimum",
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-validations",
    },
    "spec.trainer.resourcesPerNode": {"x-kubernetes-validations"},
}
"""Where a field of v2.3 says something else with us, and in which keywords."""

NARROWINGS = {
    "": {"rule"},  # metadata.name
    "spec": {"minProperties"},
    "spec.initializer": {"rule"},
    "spec.initializer.dataset.env": {"maxItems"},
    "spec.initializer.model.env": {"maxItems"},
    "spec.initializer.dataset.storageUri": {"maxLength", "rule"},
    "spec.initializer.model.storageUri": {"maxLength", "rule"},
    "spec.managedBy": {"maxLength"},
    "spec.mlPolicy": {"rule"},
    "spec.mlPolicy.mpi.sshAuthMountPath": {"maxLength"},
    "spec.mlPolicy.numNodes": {"maximum"},
    "spec.mlPolicy.torch.elasticPolicy.maxNodes": {"maximum"},
    "spec.mlPolicy.torch.elasticPolicy.minNodes": {"maximum"},
    "spec.mlPolicy.torch.numProcPerNode": {"rule"},
    "spec.runtimeRef": {"rule"},
    "spec.runtimeRef.apiGroup": {"maxLength"},
    "spec.runtimeRef.kind": {"maxLength"},
    "spec.runtimeRef.name": {"maxLength", "minLength"},
    "spec.template": {"minProperties"},
    "spec.template.spec.volumeClaimPolicies[]": {"templates"},  # became required
    "spec.template.spec.volumeClaimPolicies[].templates[]": {"metadata"},  # became required
    "spec.template.spec.volumeClaimPolicies[].templates[].metadata.namespace": {"rule"},
    "spec.trainer": {"rule"},
    "spec.trainer.args": {"maxItems", "rule"},
    "spec.trainer.args[]": {"maxLength"},
    "spec.trainer.command": {"maxItems", "rule"},
    "spec.trainer.command[]": {"maxLength"},
    "spec.trainer.env": {"maxItems", "rule"},
    "spec.trainer.image": {"maxLength", "rule"},
    "spec.trainer.numNodes": {"maximum", "rule"},
    "spec.trainer.numProcPerNode": {"maximum", "minimum", "rule"},
    "spec.trainer.resourcesPerNode": {"rule"},
}
"""Where we say more than some older release of what a user writes, and how; docs/conformance.md says why."""


def test_the_crds_are_established(server: Server) -> None:
    for plural in releases.PLURALS:
        answer = server.cluster.kubectl("get", f"crd/{plural}.trainer.kubeflow.org", "--output=json")
        conditions = json.JSONDecoder().raw_decode(answer.output)[0]["status"]["conditions"]
        assert {c["type"]: c["status"] for c in conditions} == {"Established": "True", "NamesAccepted": "True"}


@pytest.mark.parametrize("plural", releases.PLURALS)
def test_all_but_the_schema_is_the_reference(plural: str) -> None:
    ours, theirs = copy.deepcopy(OURS[plural]), releases.crds("v2.3")[plural]
    for side in (ours, theirs):
        releases.schema(side).clear()
    del theirs["metadata"]["annotations"]  # which generator made it
    columns = [side["spec"]["versions"][0].pop("additionalPrinterColumns", []) for side in (ours, theirs)]
    assert ours == theirs
    _judge_columns(*columns)


def _judge_columns(ours: list[dict[str, str]], theirs: list[dict[str, str]]) -> None:
    """Check that the reference's columns are there, in order, and that only State is read otherwise."""
    by_name = {column["name"]: column for column in ours}
    added = {"Ready", "Runtime", "Reason"}
    assert [name for name in by_name if name not in added] == [column["name"] for column in theirs]
    for column in theirs:
        if column["name"] != "State":
            assert by_name[column["name"]] == column
    for name in by_name.keys() & {"State", *added}:
        assert f"column `{name}`" in CONFORMANCE


@pytest.mark.parametrize("plural", releases.PLURALS)
def test_the_core_is_structurally_the_reference(plural: str) -> None:
    found = differences(releases.schema(OURS[plural]), releases.schema(releases.crds("v2.3")[plural]))
    unexpected = [
        one
        for one in found
        if not (one.key == "property" and one.theirs == "absent" and one.path in OLDER_FIELDS | ADDED_FIELDS)
        and one.key not in OTHER_DIFFERENCES.get(one.path, ())
    ]
    assert unexpected == []


def test_no_expected_difference_is_out_of_date() -> None:
    found = {
        (one.path, one.key)
        for plural in releases.PLURALS
        for one in differences(releases.schema(OURS[plural]), releases.schema(releases.crds("v2.3")[plural]))
    }
    expected = {(path, "property") for path in OLDER_FIELDS | ADDED_FIELDS}
    expected |= {(path, key) for path, keys in OTHER_DIFFERENCES.items() for key in keys}
    assert found == expected


@pytest.mark.parametrize("release", releases.ENGINES)
@pytest.mark.parametrize("plural", releases.PLURALS)
def test_what_is_narrower_than_a_release_is_known(plural: str, release: str) -> None:
    found = narrowings(releases.schema(OURS[plural]), releases.schema(releases.crds(release)[plural]))
    unexpected = [
        one
        for one in found
        if one.reason.split()[0] not in NARROWINGS.get(one.path, ()) and not one.path.startswith("status")
    ]
    assert unexpected == []
    assert not any(one.reason == "is not known" for one in found)


def test_every_difference_stands_in_the_conformance_page() -> None:
    for path in (OLDER_FIELDS | ADDED_FIELDS | OTHER_DIFFERENCES.keys() | NARROWINGS.keys()) - {""}:
        name = path.removeprefix("spec.").removesuffix("[]")
        assert name.rpartition(".")[2] in CONFORMANCE, f"{path} has no line in docs/conformance.md"


def test_podschema_is_what_this_server_and_jobset_say(server: Server) -> None:
    documents = [
        json.JSONDecoder().raw_decode(server.cluster.kubectl("get", "--raw", f"/openapi/v3/{path}").output)[0]
        for path in ("api/v1", "apis/batch/v1", "apis/autoscaling/v2")
    ]
    assert render(generate(documents, releases.jobset_crd())) == OUTPUT.read_text()


def words(schema: Any) -> set[str]:
    """Return every sentence of a schema: descriptions and what rules say."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    own = {schema[key] for key in ("description", "message") if isinstance(schema.get(key), str)}
    return own.union(*map(words, schema.values()))


@pytest.mark.parametrize("release", releases.ENGINES)
def test_every_sentence_is_our_own(release: str) -> None:
    theirs = set().union(*(words(crd) for crd in releases.crds(release).values())) | words(releases.jobset_crd())
    assert len(theirs) > 500
    assert set().union(*map(words, OURS.values())) & theirs == set()
