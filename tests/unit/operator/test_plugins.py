"""Objects that plugins want beside the JobSet: applied before it, or made once and kept."""

from __future__ import annotations

import itertools
from collections import deque
from typing import TYPE_CHECKING, Any

from tests.unit.operator.objects import runtime, train_job
from tests.unit.operator.world import DONE, World
from trainplane.kube.errors import AlreadyExistsError
from trainplane.operator.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, SECRETS, TRAIN_JOBS
from trainplane.render.pipeline import Pipeline
from trainplane.render.plan import KeptOnce
from trainplane.render.plugin import Plugin
from trainplane.render.plugins.jobset import JobSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.render.plan import Plan

_drawn = itertools.count()


class Keys(Plugin):
    """Wants a Secret with something drawn, and a ConfigMap."""

    name = "Keys"

    def build(self, plan: Plan) -> Iterable[dict[str, Any] | KeptOnce]:
        yield KeptOnce("v1", "Secret", f"{plan.name}-keys", lambda: {"data": {"key": str(next(_drawn))}})
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
    assert await made.settle() == DONE
    assert made.job_set() is not None
