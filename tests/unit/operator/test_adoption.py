"""A JobSet of another maker: what JobSet holds fixed stays, what may change follows the TrainJob."""

from __future__ import annotations

from typing import Any

from trainplane.api.tree import copy
from trainplane.operator.adoption import with_fixed_parts_of


def _jobset(
    *, suspend: bool, pod: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    template = {"spec": pod} if metadata is None else {"metadata": metadata, "spec": pod}
    job = {"name": "node", "replicas": 1, "template": {"spec": {"parallelism": 2, "template": template}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "job", "labels": {"new": "label"}},
        "spec": {"suspend": suspend, "replicatedJobs": [job], **spec},
    }


def _pod(jobset: dict[str, Any]) -> dict[str, Any]:
    template: dict[str, Any] = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return template


def test_containers_and_policies_stay_as_they_were_made() -> None:
    live = _jobset(suspend=True, pod={"containers": [{"name": "node"}]}, network={"subdomain": "s"})
    body = _jobset(suspend=False, pod={"containers": [{"name": "node", "env": [{"name": "PET_NNODES", "value": "2"}]}]})
    kept = with_fixed_parts_of(live, body)
    assert _pod(kept)["spec"] == {"containers": [{"name": "node"}]}
    assert kept["spec"]["network"] == {"subdomain": "s"}
    assert kept["spec"]["suspend"] is False
    assert kept["metadata"] == body["metadata"]


def test_what_jobset_lets_change_follows_the_trainjob() -> None:
    old = {"containers": [], "nodeSelector": {"flavor": "old"}, "schedulingGates": [{"name": "g"}]}
    new = {"containers": [], "nodeSelector": {"flavor": "new"}, "tolerations": [{"key": "t"}]}
    live = _jobset(suspend=True, pod=old, metadata={"labels": {"a": "old"}, "annotations": {"x": "gone"}})
    body = _jobset(suspend=False, pod=new, metadata={"labels": {"a": "new"}})
    kept = _pod(with_fixed_parts_of(live, body))
    assert kept["spec"] == new
    assert kept["metadata"] == {"labels": {"a": "new"}}


def test_metadata_is_there_if_it_was_or_if_it_is_wanted() -> None:
    bare, empty = _jobset(suspend=True, pod={}), _jobset(suspend=True, pod={}, metadata={})
    labelled = _jobset(suspend=True, pod={}, metadata={"labels": {"a": "b"}})
    assert "metadata" not in _pod(with_fixed_parts_of(bare, empty))
    assert _pod(with_fixed_parts_of(empty, bare))["metadata"] == {}
    assert _pod(with_fixed_parts_of(labelled, bare))["metadata"] == {}
    assert _pod(with_fixed_parts_of(bare, labelled))["metadata"] == {"labels": {"a": "b"}}


def test_neither_the_live_jobset_nor_the_body_is_changed() -> None:
    live = _jobset(suspend=True, pod={"containers": [], "nodeSelector": {"a": "b"}})
    body = _jobset(suspend=False, pod={"containers": [], "nodeSelector": {"c": "d"}})
    before = copy(live), copy(body)
    with_fixed_parts_of(live, body)
    assert (live, body) == before
