"""What is installed follows from its sources, and grants no more than is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deploy import __main__ as made
from deploy import chart, hub_rbac, rbac, schema
from lab.paths import REPOSITORY

if TYPE_CHECKING:
    import pytest


def test_committed_files_are_what_their_sources_say() -> None:
    assert list(made.stale()) == []


def test_a_stale_file_is_told_and_written_anew(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = chart.TEMPLATES / "_rules.tpl"
    monkeypatch.setattr(made, "wanted", lambda: {**chart.files(), **schema.files(), path: "another\n"})
    assert made.main(["--check"]) == 1
    told = capsys.readouterr()
    assert "+another" in told.out
    assert "make manifests" in told.err


def test_each_runtime_has_a_switch() -> None:
    assert {path.stem for path in (REPOSITORY / "runtimes").glob("*.yaml")} == chart.RUNTIMES.keys()
    listed = (REPOSITORY / "runtimes/Kustomization").read_text()
    assert all(f"- {name}.yaml\n" in listed for name in chart.RUNTIMES)


def test_no_grant_is_a_wildcard() -> None:
    for grant in (*rbac.OPERATOR, *(grant for role in hub_rbac.ROLES for grant in role.grants)):
        assert "*" not in {grant.group, *grant.resources, *grant.verbs, *grant.seldom}
        assert grant.verbs or grant.seldom
        assert grant.why


def test_secrets_of_users_are_never_listed() -> None:
    verbs = {verb for rule in rbac.rules("secrets") for verb in rule["verbs"]}
    assert verbs == {"create", "get"}
    assert not [rule for scope in ("jobs", "cluster") for rule in rbac.rules(scope) if "secrets" in rule["resources"]]
    for when in ("", "certificates"):
        assert all(rule["resourceNames"] for rule in rbac.rules("own", when))


def test_every_field_of_the_configuration_is_a_value() -> None:
    config = schema.values()["properties"]["manager"]["properties"]["config"]
    assert {"admission", "limits", "tls", "certManagement", "leaderElection"} <= config["properties"].keys()
    assert config["properties"]["tls"]["properties"]["minVersion"] == {"type": "string"}
    assert config["additionalProperties"] is False
    assert "$ref" not in json.dumps(config)


def test_only_an_image_that_is_used_is_a_value() -> None:
    runtimes = schema.values()["properties"]["runtimes"]["properties"]
    assert {name for name, one in runtimes.items() if "image" in one.get("properties", {})} == set(
        chart.OWN_IMAGES.values()
    )
    templates = "".join(text for path, text in chart.files().items() if path.parent.name == "runtimes")
    assert all(f".Values.runtimes.{name}.image" in templates for name in chart.OWN_IMAGES.values())
