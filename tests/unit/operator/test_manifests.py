"""`manifests/operator` fits the operator: what it names is what the operator serves and looks after."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lab.paths import REPOSITORY
from trainplane.operator.serving import TARGETS
from trainplane.operator.webhooks import PATHS

CONFIGURATIONS = list(yaml.safe_load_all((REPOSITORY / "manifests/operator/webhooks.yaml").read_text()))
WEBHOOKS = [webhook for configuration in CONFIGURATIONS for webhook in configuration["webhooks"]]


def test_the_configurations_are_those_that_are_given_our_certificate() -> None:
    named = [(one["kind"], one["metadata"]["name"]) for one in CONFIGURATIONS]
    assert named == [(target.resource.kind, target.name) for target in TARGETS]


def test_every_path_is_served_and_every_review_is_asked_for() -> None:
    assert {one["clientConfig"]["service"]["path"] for one in WEBHOOKS} == set(PATHS)


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda one: one["name"])
def test_only_deletion_goes_on_without_the_operator(webhook: dict[str, Any]) -> None:
    (rule,) = webhook["rules"]
    deletes = rule["operations"] == ["DELETE"]
    assert webhook["failurePolicy"] == ("Ignore" if deletes else "Fail")
    assert deletes or rule["operations"] == ["CREATE", "UPDATE"]
    assert rule["resources"] == [webhook["name"].split(".")[1] + "s"]


def test_runtimes_can_be_taken_out_of_judgement_and_trainjobs_cannot() -> None:
    free = [one["name"] for one in WEBHOOKS if "objectSelector" in one]
    assert free == [one["name"] for one in WEBHOOKS if "runtime" in one["name"]]
