"""An older TrainJob on a real API server: edits are passed on or refused, what it became goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.legacy.older.world import OLDER, TODAY, runtime, train_job

if TYPE_CHECKING:
    from tests.legacy.older.user import Teammate


pytestmark = pytest.mark.full

Tree = dict[str, Any]

TRAINER = {"image": "registry.invalid/none:1", "resourcesPerNode": {"requests": {"cpu": "1"}}}
WHOLE = {"apiVersion": OLDER, "kind": "TrainJob", "metadata": {"name": "whole"}}


def whole(**spec: Any) -> Tree:
    """Return a TrainJob that says all itself."""
    return {**WHOLE, "spec": {"numNodes": 2, "trainer": TRAINER, **spec}}


def test_suspend_is_passed_on_and_deleting_deletes_what_it_became(user: Teammate) -> None:
    user.apply(whole(suspend=True))
    assert user.wait_today("whole")["spec"]["suspend"] is True
    user.patch("v2alpha1trainjobs", "whole", {"spec": {"suspend": False}})
    user.wait("it to be resumed", lambda: not user.today("whole")["spec"].get("suspend"))
    user.play("whole", "node", "run", 2)
    user.wait_older("whole", "RUNNING")
    user.patch("v2alpha1trainjobs", "whole", {"spec": {"suspend": True}})
    user.wait("it to be stopped", lambda: user.today("whole")["spec"].get("suspend") is True)
    user.kubectl("delete", "v2alpha1trainjobs", "whole")
    made = ("trainjobs", "trainingruntimes", "jobsets")
    user.wait("all to go", lambda: not any(map(user.names, made)))


@pytest.mark.parametrize(
    "change",
    [
        {"numNodes": 3},
        {"numNodes": None, "runtimeRef": {"name": "today"}},
        {"runtimeRef": {"name": "today"}},
        {"trainer": {"image": "registry.invalid/other:1"}},
        {"trainer": {"command": ["other"]}},
        {"datasetConfig": {"storageUri": "s3://bucket/set"}},
        {"modelConfig": {"input": {"config": "hf://owner/tiny"}}},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
    ],
    ids="+".join,
)
def test_what_today_holds_fixed_is_refused_where_it_is_edited(user: Teammate, change: Tree) -> None:
    user.apply(whole(suspend=True))
    patch = yaml.safe_dump({"spec": change})
    refused = user.kubectl("patch", "v2alpha1trainjobs", "whole", "--type=merge", f"--patch={patch}", check=False)
    assert "cannot be changed once the TrainJob exists" in refused.stderr


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"numNodes": 0}, "numNodes"),
        ({"numNodes": 10**9}, "numNodes"),
        ({"trainer": {**TRAINER, "numNodes": 3}}, "numNodes and trainer.numNodes differ"),
        ({"datasetConfig": {"storageUri": "no-scheme"}}, "must be empty or a URI with a scheme"),
        ({"modelConfig": {"input": {"config": "hf://a/b", "storageUri": "hf://a/b"}}}, "name the model once"),
        ({"managedBy": "somebody"}, "managedBy"),
        ({"runtimeRef": {"name": "x", "kind": "Secret"}}, "runtimeRef.kind"),
        ({"runtimeRef": {"name": "x", "apiGroup": "apps"}}, "runtimeRef.apiGroup"),
        ({"unknownField": 1}, "unknown field"),
    ],
)
def test_what_makes_no_sense_is_refused(user: Teammate, spec: Tree, told: str) -> None:
    assert told in user.apply(whole(**spec), check=False).stderr


def test_a_name_that_is_taken_is_told_and_free_again_when_its_owner_goes(user: Teammate) -> None:
    user.apply(train_job(TODAY, "whole", suspend=True))
    before = user.today("whole")["metadata"]["uid"]
    user.apply(whole(suspend=True))
    told = user.wait_sync("whole", "False")
    assert told["reason"] == "NameTaken"
    assert user.today("whole")["metadata"]["uid"] == before
    assert "ownerReferences" not in user.today("whole")["metadata"]
    user.kubectl("delete", "trainjobs", "whole")
    user.wait_sync("whole")
    assert user.today("whole")["metadata"]["ownerReferences"][0]["apiVersion"] == OLDER


def test_a_runtime_that_is_missing_is_told_and_waited_for(user: Teammate) -> None:
    name = f"{user.namespace}-later"
    user.apply(train_job(OLDER, "waits", group="kubeflow.org", runtime=name, suspend=True))
    told = user.wait_sync("waits", "False")
    assert told["reason"] == "Refused"
    assert name in told["message"]
    user.apply(runtime(OLDER, name))
    user.wait_sync("waits")
    assert user.today("waits")["spec"]["runtimeRef"]["name"] == f"v2alpha1-runtime.{name}"
    user.kubectl("delete", "v2alpha1trainjobs", "waits")
    user.kubectl("delete", "v2alpha1clustertrainingruntimes", name)
