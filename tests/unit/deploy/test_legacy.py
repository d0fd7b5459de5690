"""Older kinds: nothing is installed or granted unasked, and what is asked for comes whole."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from deploy import chart, legacy, legacy_rbac, schema
from lab.paths import REPOSITORY
from trainplane.api.configuration import LEGACY_KINDS
from trainplane.api.crds.legacy import KINDS as CRDS
from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import KINDS

FILES = legacy.files()
CONFIGURATIONS = list(yaml.safe_load_all(FILES[legacy.PLAIN / "webhooks.yaml"]))


def test_every_template_stands_under_a_switch() -> None:
    templates = {path: text for path, text in FILES.items() if path.parent == legacy.TEMPLATES}
    assert len(templates) == len(CRDS) + 2
    for path, text in templates.items():
        _, first, *_, last = text.splitlines()
        if path.suffix == ".yaml":
            assert first.startswith("{{- if ")
            assert 'include "trainplane.legacy" (list . "' in first
            assert last == "{{- end }}"


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd.plural)
def test_a_crd_comes_with_its_kind_and_stays(crd: Any) -> None:
    text = FILES[legacy.TEMPLATES / crd.file_name]
    assert f'(and .Values.crds.enabled (include "trainplane.legacy" (list . "{crd.plural}")))' in text.replace(
        "{{- if ", "("
    ).replace(" }}", ")", 1)
    assert "helm.sh/resource-policy: keep" in text
    assert ("path: /convert" in text) == (len(crd.versions) > 1)


def test_who_converts_is_the_release_wherever_it_is() -> None:
    text = FILES[legacy.TEMPLATES / "kubeflow.org_mpijobs.yaml"]
    assert 'name: {{ include "trainplane.service.name" . }}' in text
    assert "namespace: {{ .Release.Namespace }}" in text
    assert "caBundle: {{ . }}" in text
    assert chart.SERVICE not in text


def test_each_kind_is_completed_when_it_is_made_and_judged_then_and_later() -> None:
    mutating, validating = CONFIGURATIONS
    assert [one["metadata"]["name"] for one in CONFIGURATIONS] == [names.DEFAULTER, names.VALIDATOR]
    for configuration, verb, operations in (
        (mutating, "mutate", ["CREATE"]),
        (validating, "validate", ["CREATE", "UPDATE"]),
    ):
        assert len(configuration["webhooks"]) == len(KINDS)
        for kind, webhook in zip(KINDS.values(), configuration["webhooks"], strict=True):
            (rule,) = webhook["rules"]
            assert webhook["clientConfig"]["service"]["path"] == kind.review_path(verb)
            assert (rule["resources"], rule["apiVersions"]) == ([kind.plural], [kind.version])
            assert rule["operations"] == operations
            assert (webhook["failurePolicy"], webhook["matchPolicy"]) == ("Fail", "Equivalent")


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.plural)
def test_each_webhook_stands_under_the_switch_of_its_kind(kind: Any) -> None:
    text = FILES[legacy.TEMPLATES / "webhooks.yaml"]
    switch = f'  {{{{- if include "trainplane.legacy" (list . "{kind.plural}") }}}}\n'
    for first in ("defaulter", "validator"):
        assert f"{switch}  - name: {first}.{kind.singular}.kubeflow.org\n" in text


def test_no_right_is_a_wildcard_and_no_secret_is_listed() -> None:
    for grant in legacy_rbac.OPERATOR:
        assert "*" not in {grant.group, *grant.resources, *grant.verbs, *grant.seldom}
        assert grant.verbs or grant.seldom
        assert grant.why
        assert "secrets" not in grant.resources
    granted = {grant.scope for grant in legacy_rbac.OPERATOR}
    assert granted == {"jobs", "cluster"}  # the scopes of which templates are made


def test_every_right_follows_from_a_kind_that_can_be_asked_for() -> None:
    assert {kind for need in legacy_rbac.NEEDS for kind in need.kinds} == set(LEGACY_KINDS)
    config = schema.values()["properties"]["manager"]["properties"]["config"]["properties"]
    assert config["legacy"]["properties"]["kinds"]["items"] == {"enum": list(LEGACY_KINDS)}


def test_webhooks_and_crds_that_we_write_to_are_named() -> None:
    for grant in legacy_rbac.OPERATOR:
        if grant.group in {"admissionregistration.k8s.io", "apiextensions.k8s.io"}:
            assert grant.names
            assert set(grant.verbs) == {"get", "patch"}


def test_the_chart_asks_for_no_older_kind() -> None:
    values = yaml.safe_load((REPOSITORY / "charts/trainplane/values.yaml").read_text())
    assert values["manager"]["config"]["legacy"]["kinds"] == []


@pytest.mark.parametrize("folder", ["manifests/crds", "manifests/crds-legacy", "manifests/legacy"])
def test_kustomize_knows_every_file_of_a_folder(folder: str) -> None:
    listed = yaml.safe_load((REPOSITORY / folder / "Kustomization").read_text())["resources"]
    assert sorted(listed) == sorted(path.name for path in (REPOSITORY / folder).glob("*.yaml"))


def test_the_overlay_serves_every_kind() -> None:
    (document,) = yaml.safe_load_all(FILES[legacy.OVERLAY / "config.yaml"])
    (text,) = document["data"].values()
    assert yaml.safe_load(text)["legacy"]["kinds"] == list(LEGACY_KINDS)
