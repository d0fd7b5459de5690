"""What the hub server shows of itself, and that its alerts ask for what there is."""

from __future__ import annotations

import re

import pytest
import yaml

from lab.paths import REPOSITORY
from tests.unit.hub.hubstage import ROOT, HubStage
from trainplane.kube.testing.server import FakeServer

ALERTS = yaml.safe_load((REPOSITORY / "manifests/hub/alerts.yaml").read_text())
WORDS = {"absent", "by", "cluster", "increase", "max", "or", "rate", "scalar", "subresource", "sum"}
"""What stands in the alerts beside metrics: PromQL's words, and labels."""


RULES: list[dict[str, str]] = [rule for group in ALERTS["spec"]["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
async def test_an_alert_asks_for_metrics_that_there_are(stage: HubStage, rule: dict[str, str]) -> None:
    await stage.get("x")
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", rule["expr"])
    asked = set(re.findall(r"[a-z_][a-z0-9_]+", bare)) - WORDS
    there = {sample.name for family in stage.metrics.registry.collect() for sample in family.samples}
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in stage.metrics.registry.collect()
    }
    assert asked
    assert asked <= there | families


async def test_workers_streams_and_the_volume_are_shown(stage: HubStage) -> None:
    assert stage.metric("trainplane_hub_worker_connected", cluster="worker1") == 1
    stage.put_job()
    stage.print(stage.put_pod(), 3)
    await stage.until_log(3)
    assert stage.metric("trainplane_hub_log_streams", cluster="worker1") == 1
    assert stage.metric("trainplane_hub_log_streams_limit") == stage.settings.streams
    assert 0 < stage.metric("trainplane_hub_kept_bytes") < stage.metric("trainplane_hub_kept_bytes_limit")
    assert 0 < stage.metric("trainplane_hub_kept_files") < stage.metric("trainplane_hub_kept_files_limit")
    assert stage.metric("trainplane_hub_set_aside_total") == 0
    assert stage.metric("trainplane_hub_log_gaps_total") == 0
    await stage.worker.stop()
    await stage.until(lambda: stage.metric("trainplane_hub_worker_connected", cluster="worker1") == 0)


async def test_requests_are_counted_whatever_is_asked(stage: HubStage) -> None:
    stage.put_job()
    await stage.get("x")
    await stage.get("x/pods")
    await stage.get("y")
    await stage.get(f"{ROOT}/trainjobs")
    await stage.get("x", method="DELETE")
    await stage.get("/healthz")
    for number in range(3):
        await stage.get(f"/apis/of-my-own-{number}")

    def counted(verb: str, subresource: str, code: int) -> float:
        return stage.metric("trainplane_hub_requests_total", verb=verb, subresource=subresource, code=str(code))

    assert counted("get", "", 200) == 1
    assert counted("get", "pods", 200) == 1
    assert counted("get", "", 404) == 1
    assert counted("list", "", 200) == 1
    assert counted("other", "", 405) == 1
    assert counted("other", "", 404) == 3


async def test_a_worker_that_is_removed_is_not_shown_any_more(stage: HubStage) -> None:
    async with FakeServer() as other, other.client(clock=stage.clock) as client:
        stage.workers.clients["worker2"] = client
        await stage.until(lambda: "worker2" in stage.collector.mirrors)
        assert stage.metric("trainplane_hub_worker_connected", cluster="worker2") == 1
        del stage.workers.clients["worker2"]
        await stage.until(lambda: "worker2" not in stage.collector.mirrors)
    shown = stage.metrics.registry.get_sample_value("trainplane_hub_worker_connected", {"cluster": "worker2"})
    assert shown is None
