from __future__ import annotations

from typing import Any

from tests.unit.render.objects import job, patch, render, runtime
from trainplane.api.tree import get

POD = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
CLAIM: dict[str, Any] = {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}, "accessModes": ["ReadWriteOnce"]}


def volumes(*volumes: Any) -> Any:
    """Return the volumes of a TrainJob that a patch brings."""
    return get(render(job(patch(volumes=list(volumes))), runtime()).jobset.tree, *POD, "volumes")


def test_a_projected_volume_has_no_sources_if_it_names_none() -> None:
    whole = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
    for projected in ({"defaultMode": 420}, {"defaultMode": 420, "sources": None}):
        mended = {"name": "w", "projected": {"defaultMode": 420, "sources": []}}
        assert volumes(whole, {"name": "w", "projected": projected}) == [whole, mended]


def test_what_a_claim_is_made_from_is_of_the_core_group_if_it_names_none() -> None:
    other = {"kind": "VolumeSnapshot", "name": "b", "apiGroup": "snapshot.storage.k8s.io"}
    (volume,) = volumes(
        {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM, "dataSourceRef": {**other}}}}}
    )
    mended = {**CLAIM["dataSource"], "apiGroup": ""}
    spec = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
    assert (spec["dataSource"], spec["dataSourceRef"]) == (mended, other)


def test_claims_of_the_runtime_are_mended_too() -> None:
    made = runtime()
    made.tree["spec"]["template"]["spec"]["volumeClaimPolicies"] = [{"templates": [{"spec": dict(CLAIM)}]}]
    jobset = render(job(), made).jobset
    at = ("spec", "volumeClaimPolicies", 0, "templates", 0, "spec", "dataSource", "apiGroup")
    assert get(jobset.tree, *at) == ""
    assert str(jobset.origin_of(*at)) == "plugin JobSet"
    assert "apiGroup" not in CLAIM["dataSource"]


def test_what_has_another_form_stays() -> None:
    for volume in ({"name": "v", "projected": "x"}, {"name": "v", "ephemeral": ["x"]}, {"name": "v"}):
        assert volumes(volume) == [volume]
