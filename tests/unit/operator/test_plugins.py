"""Objects that plugins want beside the JobSet: applied before it, or made once and kept."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operator.objects import NAMESPACE, runtime, train_job
from tests.unit.operator.world import DONE, World
from trainplane.kube.controller import RequeueAfter
from trainplane.kube.errors import AlreadyExistsError
from trainplane.operator.errors import ForeignObjectError
from trainplane.render.pipeline import Pipeline
from trainplane.render.plan import CreateOnce
from trainplane.render.plugin import Plugin
from trainplane.render.plugins.jobset import JobSet
from trainplane.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, SECRETS, TRAIN_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.render.plan import Plan

_drawn = itertools.count()


class Keys(Plugin):
    """Wants a Secret with something drawn, and a ConfigMap."""

    name = "Keys"

    def build(self, plan: Plan) -> Iterable[dict[str, Any] | CreateOnce]:
        yield CreateOnce("v1", "Secret", f"{plan.name}-keys", lambda: {"data": {"key": str(next(_drawn))}}, ("key",))
        hosts = {"metadata": {"name": f"{plan.name}-hosts"}, "data": {"hosts": "a b"}}
        yield {"apiVersion": "v1", "kind": "ConfigMap", **hosts}


def world(**spec: Any) -> World:
    made = World(pipeline=Pipeline([Keys(), JobSet()]))
    made.put(CLUSTER_TRAINING_RUNTIMES, runtime())
    made.put(TRAIN_JOBS, train_job(**spec))
    return made


async def test_the_jobset_comes_last() -> None:
    made = world()
    assert await made.settle() == DONE
    assert made.client.writes == [
        "create configmaps job-runtime-snapshot",
        "create secrets job-keys",
        "apply configmaps job-hosts",
        "apply jobsets job",
    ]
    for resource, name in ((SECRETS, "job-keys"), (CONFIG_MAPS, "job-hosts")):
        found = made.find(resource, name)
        assert found is not None
        assert found["metadata"]["ownerReferences"][0]["uid"] == "uid-job"


async def test_what_is_made_once_is_kept() -> None:
    made = world(suspend=True)
    await made.settle()
    before = made.find(SECRETS, "job-keys")
    fresh = made.restart()
    fresh.edit(suspend=False)
    await fresh.settle()
    assert fresh.find(SECRETS, "job-keys") == before
    assert "create secrets job-keys" not in fresh.client.writes


async def test_another_replica_may_be_first() -> None:
    made = world()
    made.client.refuse["create secrets"] = deque([AlreadyExistsError("job-keys")])
    made.sync()
    assert await made.reconcile() == RequeueAfter(2.0)  # it came and went, as far as we can see
    assert made.job_set() is None
    assert await made.settle() == DONE
    assert made.job_set() is not None


def planted(made: World, data: dict[str, str] | None, *owners: dict[str, Any]) -> None:
    meta = {"name": "job-keys", "namespace": NAMESPACE, "ownerReferences": list(owners)}
    made.put(SECRETS, {"metadata": meta, "data": data})


def owner(uid: str, kind: str = "TrainJob", name: str = "job", *, controls: bool = True) -> dict[str, Any]:
    return {"kind": kind, "name": name, "uid": uid, "controller": controls}


@pytest.mark.parametrize(
    "owners",
    [[], [owner("uid-job", controls=False)], [owner("x", "Deployment")], [owner("x", name="another")]],
    ids=["nobody's", "owned but not controlled", "another kind's", "another TrainJob's"],
)
async def test_keys_that_somebody_else_knows_are_not_used(owners: list[dict[str, Any]]) -> None:
    made = world()
    planted(made, {"key": "known"}, *owners)
    made.sync()
    with pytest.raises(ForeignObjectError, match=r"Secret job-keys is not controlled by this TrainJob.*delete it"):
        await made.reconcile()
    assert made.job_set() is None
    assert made.news() == ["TrainJobResourcesCreationFailed"]
    made.delete(SECRETS, "job-keys")
    assert await made.settle() == DONE
    assert made.job_set() is not None


async def test_keys_without_what_pods_read_are_told() -> None:
    made = world()
    planted(made, {"other": "x"}, owner("uid-job"))
    made.sync()
    with pytest.raises(ForeignObjectError, match=r"lacks key.*delete it, and it is made anew"):
        await made.reconcile()
    assert made.job_set() is None


async def test_a_second_look_reads_keys_and_does_not_draw_any() -> None:
    made = world(suspend=True)
    await made.settle()
    drawn = next(_drawn)
    made.client.asked.clear()
    made.edit(suspend=False)
    await made.settle()
    assert next(_drawn) == drawn + 1
    assert "get secrets job-keys" in [str(one) for one in made.client.asked]
