"""What the documents say of jobs of v1 that needs no cluster: their overlay and their gate."""

from __future__ import annotations

import pytest
import yaml

from lab.engines import binary
from lab.processes import run
from tests.seeds.documents.promises import ROOT
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.operator.settings import parse

GATE = "JobManagedBy"


def test_an_overlay_installs_an_operator_that_serves_jobs_of_v1() -> None:
    """Under the name of Training Operator's own overlay stands one without them: in most clusters they are gone."""
    built = run([binary("kubectl"), "kustomize", str(ROOT / "manifests/overlays/legacy")]).stdout
    made = [one for one in yaml.safe_load_all(built) if one]
    crds = {one["spec"]["names"]["plural"] for one in made if one["kind"] == "CustomResourceDefinition"}
    assert crds >= {"trainjobs", *BY_PLURAL}
    (settings,) = [
        yaml.safe_load(text)
        for one in made
        if one["kind"] == "ConfigMap"
        for name, text in one["data"].items()
        if name == "controller_manager_config.yaml"
    ]
    assert set(settings["legacy"]["kinds"]) >= set(BY_PLURAL)


@pytest.mark.parametrize(("flags", "enabled"), [([], True), ([f"{GATE}=true"], True), ([f"{GATE}=false"], False)])
def test_the_gate_of_managed_jobs_is_known_by_its_name(flags: list[str], *, enabled: bool) -> None:
    chosen = parse([f"--feature-gates={flag}" for flag in flags], {})
    assert chosen.configuration.enabled(GATE) is enabled
