"""Metrics: the names that dashboards know, with the numbers that the runtime reports."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from trainplane.kube.certificates import ServingContext
from trainplane.kube.controller import Controller, ControllerSettings, Done, RequeueAfter, Result, Terminal
from trainplane.kube.listener import ListenerSettings
from trainplane.kube.metrics import Metrics
from trainplane.kube.pki import CertificatePolicy, renew
from trainplane.kube.resource import PODS
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from trainplane.kube.observer import Observer

LOOPBACK = ListenerSettings(0, host="127.0.0.1")
CONTROLLER = {"controller": "jobs"}
QUEUE = {"name": "jobs", "controller": "jobs"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metrics(clock: FakeClock) -> Metrics:
    return Metrics(clock)


def value(metrics: Metrics, sample: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(sample, labels)


def test_metrics_are_an_observer(metrics: Metrics) -> None:
    observer: Observer = metrics
    assert observer is metrics


@pytest.mark.parametrize(
    ("outcome", "result", "errors", "terminal", "retries", "timeouts"),
    [
        ("done", "success", 0, 0, 0, 0),
        ("requeued", "requeue_after", 0, 0, 0, 0),
        ("failed", "error", 1, 0, 1, 0),
        ("overdue", "error", 1, 0, 1, 1),
        ("terminal", "error", 1, 1, 0, 0),
        ("something new", "error", 1, 0, 1, 0),
    ],
)
def test_outcomes_are_counted_under_the_known_names(  # noqa: PLR0917 one column of the table each
    outcome: str, result: str, errors: int, terminal: int, retries: int, timeouts: int
) -> None:
    metrics = Metrics(FakeClock())
    metrics.work_begun("jobs", waited=0.5, depth=3)
    metrics.work_ended("jobs", outcome=outcome, seconds=0.02)
    assert value(metrics, "controller_runtime_reconcile_total", **CONTROLLER, result=result) == 1
    assert value(metrics, "controller_runtime_reconcile_errors_total", **CONTROLLER) == errors
    assert value(metrics, "controller_runtime_terminal_reconcile_errors_total", **CONTROLLER) == terminal
    assert value(metrics, "controller_runtime_reconcile_timeouts_total", **CONTROLLER) == timeouts
    assert value(metrics, "workqueue_retries_total", **QUEUE) == retries
    assert value(metrics, "controller_runtime_reconcile_time_seconds_sum", **CONTROLLER) == 0.02
    assert value(metrics, "controller_runtime_reconcile_time_seconds_bucket", **CONTROLLER, le="0.01") == 0
    assert value(metrics, "controller_runtime_reconcile_time_seconds_bucket", **CONTROLLER, le="0.025") == 1
    assert value(metrics, "workqueue_queue_duration_seconds_sum", **QUEUE) == 0.5
    assert value(metrics, "workqueue_work_duration_seconds_count", **QUEUE) == 1
    assert value(metrics, "workqueue_depth", **QUEUE) == 3
    assert value(metrics, "workqueue_adds_total", **QUEUE) == 4


async def test_work_under_way_is_seen_at_each_scrape(metrics: Metrics, clock: FakeClock) -> None:
    metrics.work_begun("jobs", waited=0.0, depth=0)
    await clock.advance(10)
    metrics.work_begun("jobs", waited=0.0, depth=0)
    await clock.advance(5)
    assert value(metrics, "controller_runtime_active_workers", **CONTROLLER) == 2
    assert value(metrics, "workqueue_unfinished_work_seconds", **QUEUE) == 20
    assert value(metrics, "workqueue_longest_running_processor_seconds", **QUEUE) == 15
    metrics.work_ended("jobs", outcome="done", seconds=5.0)  # the younger one
    assert value(metrics, "workqueue_longest_running_processor_seconds", **QUEUE) == 15
    metrics.work_ended("jobs", outcome="done", seconds=15.0)
    assert value(metrics, "controller_runtime_active_workers", **CONTROLLER) == 0
    assert value(metrics, "workqueue_longest_running_processor_seconds", **QUEUE) == 0


async def test_a_real_controller_and_queue_report_themselves(metrics: Metrics, clock: FakeClock) -> None:
    answers: dict[str, Result | Exception] = {
        "fine": Done(),
        "later": RequeueAfter(1e6),
        "never": Terminal(ValueError("bad spec")),
        "broken": ZeroDivisionError(),
    }

    async def reconcile(key: str) -> Result:
        await clock.sleep(1)
        answer = answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    controller: Controller[str] = Controller(
        "jobs", reconcile, clock, settings=ControllerSettings(workers=2), observer=metrics
    )
    queue = controller.queue
    metrics.controller("jobs", queue=queue, workers=2)
    for key in answers:
        queue.add(key)
    assert value(metrics, "workqueue_depth", **QUEUE) == 4
    assert value(metrics, "workqueue_adds_total", **QUEUE) == 4
    assert value(metrics, "controller_runtime_max_concurrent_reconciles", **CONTROLLER) == 2
    running = asyncio.create_task(controller.run())
    await clock.advance(0.5)
    assert value(metrics, "workqueue_depth", **QUEUE) == 2
    assert value(metrics, "controller_runtime_active_workers", **CONTROLLER) == 2
    await clock.advance(1.5)
    counted = {
        result: value(metrics, "controller_runtime_reconcile_total", **CONTROLLER, result=result)
        for result in ("success", "requeue_after", "error")
    }
    assert counted == {"success": 1, "requeue_after": 1, "error": 2}
    assert value(metrics, "controller_runtime_terminal_reconcile_errors_total", **CONTROLLER) == 1
    assert value(metrics, "workqueue_queue_duration_seconds_sum", **QUEUE) == pytest.approx(2.0)
    running.cancel()


def test_reflectors_are_counted(metrics: Metrics) -> None:
    metrics.listed(PODS, objects=1200, seconds=0.3)
    metrics.stream_failed(PODS, OSError("cut"))
    metrics.handler_failed(PODS, KeyError("x"))
    assert value(metrics, "reflector_lists_total", name="pods") == 1
    assert value(metrics, "reflector_objects", name="pods") == 1200
    assert value(metrics, "reflector_failures_total", name="pods", error="OSError") == 1
    assert value(metrics, "reflector_handler_failures_total", name="pods", error="KeyError") == 1


def test_requests_are_counted_by_code_method_and_host(metrics: Metrics) -> None:
    metrics.requested("GET", "10.0.0.1:443", 200)
    metrics.requested("GET", "10.0.0.1:443", 200)
    metrics.requested("PATCH", "10.0.0.1:443", "<error>")
    assert value(metrics, "rest_client_requests_total", code="200", method="GET", host="10.0.0.1:443") == 2
    assert value(metrics, "rest_client_requests_total", code="<error>", method="PATCH", host="10.0.0.1:443") == 1


def test_leadership_and_lag_are_asked_at_each_scrape(metrics: Metrics) -> None:
    leads, lags = iter([True, False]), iter([0.25, 0.0])
    metrics.leading("lock", lambda: next(leads))
    metrics.loop_lag(lambda: next(lags))
    first, second = (
        {family.name: [sample.value for sample in family.samples] for family in metrics.registry.collect()}
        for _ in range(2)
    )
    assert (first["leader_election_master_status"], second["leader_election_master_status"]) == ([1.0], [0.0])
    assert (first["event_loop_lag_seconds"], second["event_loop_lag_seconds"]) == ([0.25], [0.0])


def test_reviews_are_counted_by_path_and_code(metrics: Metrics) -> None:
    observer = metrics.webhook("/v")
    assert value(metrics, "controller_runtime_webhook_requests_total", webhook="/v", code="500") == 0
    observer.started("/v")
    assert value(metrics, "controller_runtime_webhook_requests_in_flight", webhook="/v") == 1
    observer.finished("/v", 200, 0.002)
    observer.started("/v")
    observer.finished("/v", 413, 0.002)
    assert value(metrics, "controller_runtime_webhook_requests_in_flight", webhook="/v") == 0
    assert value(metrics, "controller_runtime_webhook_requests_total", webhook="/v", code="200") == 1
    assert value(metrics, "controller_runtime_webhook_requests_total", webhook="/v", code="413") == 1
    assert value(metrics, "controller_runtime_webhook_latency_seconds_count", webhook="/v") == 2


@pytest.mark.parametrize("accept", ["", "text/plain", "application/openmetrics-text; version=1.0.0"])
async def test_metrics_are_served_and_parse(metrics: Metrics, accept: str) -> None:
    metrics.work_begun("jobs", waited=0.5, depth=3)
    async with metrics.server(LOOPBACK) as listener, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{listener.port}"
        async with session.get(f"{url}/metrics", headers={"Accept": accept}) as response:
            assert response.status == 200
            kind = "application/openmetrics-text" if "openmetrics" in accept else "text/plain"
            assert response.content_type == kind
            text = await response.text()
        assert 'workqueue_depth{controller="jobs",name="jobs"} 3.0' in text
        if "openmetrics" not in accept:
            names = {family.name for family in text_string_to_metric_families(text)}
            assert {"workqueue_adds", "controller_runtime_reconcile", "process_cpu_seconds"} <= names
        async with session.get(f"{url}/") as response:
            assert response.status == 404
        async with session.post(f"{url}/metrics") as response:
            assert response.status == 405


async def test_metrics_can_be_served_over_tls(metrics: Metrics) -> None:
    material, _ = renew(None, CertificatePolicy(("localhost",)), datetime.now(UTC))
    serving = ServingContext()
    serving.load(material.tls_crt, material.tls_key)
    trusting = ssl.create_default_context(cadata=material.ca_crt.decode())
    async with (
        metrics.server(LOOPBACK, tls=serving.context) as listener,
        aiohttp.ClientSession() as session,
        session.get(f"https://localhost:{listener.port}/metrics", ssl=trusting) as response,
    ):
        assert response.status == 200


def test_two_processes_worth_of_metrics_do_not_meet() -> None:
    first, second = Metrics(FakeClock()), Metrics(FakeClock())
    first.work_begun("jobs", waited=0.0, depth=0)
    assert value(second, "workqueue_depth", **QUEUE) is None
