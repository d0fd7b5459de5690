"""Metrics under the names that controller-runtime and client-go use, so that existing dashboards and alerts fit.

One `Metrics` per process holds the registry; it hands out small objects whose methods are plain words and whose label
children are bound once, as a bound counter costs 0.6 µs and a labelled one several.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from trainplane.kube.errors import ForbiddenError, KubeError, UnauthorizedError
from trainplane.kube.listener import Listener, ListenerSettings, path_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric

    from trainplane.kube.clock import Clock
    from trainplane.kube.pathaccess import PathAccess
    from trainplane.kube.resource import Resource

log = logging.getLogger(__name__)

RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0),
    *(25.0, 30.0, 40.0, 50.0, 60.0),
)
"""Upper bounds in seconds; the same as controller-runtime's, so that quantiles can be compared."""

WAIT_BUCKETS = tuple(10.0**power for power in range(-8, 4))
"""Upper bounds in seconds, 10 ns to 1,000 s; the same as client-go's."""

_OUTCOMES = {"done": "success", "requeued": "requeue_after", "terminal": "error", "failed": "error", "overdue": "error"}
"""The outcomes that `Observer.work_ended` names, and the results that controller-runtime counts."""


class Sized(Protocol):
    """A queue: how many keys wait in it."""

    def __len__(self) -> int:
        """Return the number of waiting keys."""
        ...


class Metrics:
    """Everything the runtime counts, in a registry of its own. It is an `Observer` for reflectors and controllers."""

    def __init__(self, clock: Clock, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._families = _Families(self.registry)
        self._clock = clock
        self._controllers: dict[str, ControllerMetrics] = {}
        self._requests: dict[tuple[str, str, str], Counter] = {}
        self.registry.register(_QueueCollector(self._controllers))

    def controller(self, name: str, *, queue: Sized | None = None, workers: int = 0) -> ControllerMetrics:
        """Return the metrics of a controller, made at the first call; a queue is asked for its depth when scraped."""
        found = self._controllers.get(name)
        if found is None:
            found = self._controllers[name] = ControllerMetrics(name, self._families, self._clock)
        if queue is not None:  # an empty one is false
            found.queue = queue
        if workers:
            self._families.max_workers.labels(name).set(workers)
        return found

    def webhook(self, *paths: str) -> WebhookMetrics:
        """Return an observer for a webhook server that serves these paths."""
        return WebhookMetrics(self._families, paths)

    def leading(self, lease: str, is_leader: Callable[[], bool]) -> None:
        """Show whether this process leads; asked at each scrape, so a lapsed leader shows 0."""
        self._families.leading.labels(lease).set_function(lambda: float(is_leader()))

    def loop_lag(self, take_worst: Callable[[], float]) -> None:
        """Show how late the event loop was at worst since the last scrape."""
        self._families.loop_lag.set_function(take_worst)

    def event_dropped(self) -> None:
        """Count news of an object that is never written as an Event."""
        self._families.events_dropped.inc()

    def requested(self, method: str, host: str, code: int | str) -> None:
        """Count a request to an API server; `code` is the HTTP code, or "<error>" if no answer came."""
        key = (str(code), method, host)
        child = self._requests.get(key)
        if child is None:
            child = self._requests[key] = self._families.requests.labels(*key)
        child.inc()

    def listed(self, resource: Resource, *, objects: int, seconds: float) -> None:
        """See `Observer`."""
        self._families.lists.labels(resource.plural).inc()
        self._families.list_seconds.labels(resource.plural).observe(seconds)
        self._families.objects.labels(resource.plural).set(objects)

    def stream_failed(self, resource: Resource, error: Exception) -> None:
        """See `Observer`."""
        self._families.stream_failures.labels(resource.plural, type(error).__name__).inc()

    def handler_failed(self, resource: Resource, error: Exception) -> None:
        """See `Observer`."""
        self._families.handler_failures.labels(resource.plural, type(error).__name__).inc()

    def work_begun(self, controller: str, *, waited: float, depth: int) -> None:
        """See `Observer`."""
        (self._controllers.get(controller) or self.controller(controller)).begun(waited, depth)

    def work_ended(self, controller: str, *, outcome: str, seconds: float) -> None:
        """See `Observer`."""
        (self._controllers.get(controller) or self.controller(controller)).ended(outcome, seconds)

    def server(
        self, settings: ListenerSettings, *, tls: ssl.SSLContext | None = None, access: PathAccess | None = None
    ) -> Listener:
        """Return a server of `/metrics`, to be started by the caller; with `access`, for those whom it lets in."""

        async def serve(request: web.BaseRequest) -> web.Response:
            refusal = None if access is None else await _refusal(access, request)
            return await self._serve(request) if refusal is None else refusal

        return Listener(serve, settings, tls=tls)

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        if path_of(request) != "/metrics":
            return web.Response(status=404, text="metrics are at /metrics\n")
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="metrics are asked with GET\n", headers={"Allow": "GET, HEAD"})
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self.registry), headers={"Content-Type": content_type})


async def _refusal(access: PathAccess, request: web.BaseRequest) -> web.Response | None:
    """Return what somebody is told who is not let in. Nobody is while the API server cannot be asked."""
    headers = request.headers.getall("Authorization", [])
    try:
        await access.check(headers[0] if len(headers) == 1 else "", request.method.lower(), path_of(request))
    except (UnauthorizedError, ForbiddenError) as error:
        return web.Response(status=error.code, text=f"{error.message}\n")
    except KubeError as error:
        log.warning("a reader of metrics cannot be judged", extra={"error": type(error).__name__})
        return web.Response(status=503, text="the API server cannot be asked who you are and what you may: try again\n")
    return None


class ControllerMetrics:
    """One controller and its queue. What stands in a queue is counted when scraped, from what began and what waits."""

    def __init__(self, name: str, families: _Families, clock: Clock) -> None:
        self.name = name
        self.queue: Sized | None = None
        self.taken = 0
        self.depth = 0
        self._clock = clock
        self._starts: list[float] = []
        self._waited = families.queue_seconds.labels(name, name).observe
        self._worked = families.work_seconds.labels(name, name).observe
        self._reconciled = families.reconcile_seconds.labels(name).observe
        self._results = {result: families.reconciles.labels(name, result) for result in set(_OUTCOMES.values())}
        self._errors = families.errors.labels(name)
        self._terminal = families.terminal.labels(name)
        self._timeouts = families.timeouts.labels(name)
        self._retries = families.retries.labels(name, name)
        families.active.labels(name).set_function(lambda: len(self._starts))

    def begun(self, waited: float, depth: int) -> None:
        """A worker took a key that had waited so long; so many still wait."""
        self.taken += 1
        self.depth = depth
        self._starts.append(self._clock.monotonic())
        self._waited(waited)

    def ended(self, outcome: str, seconds: float) -> None:
        """A worker is done with a key, after so long."""
        began = self._clock.monotonic() - seconds
        if self._starts:
            self._starts.remove(min(self._starts, key=lambda start: abs(start - began)))
        self._worked(seconds)
        self._reconciled(seconds)
        result = _OUTCOMES.get(outcome, "error")
        self._results[result].inc()
        if result == "error":
            self._errors.inc()
            (self._terminal if outcome == "terminal" else self._retries).inc()
        if outcome == "overdue":
            self._timeouts.inc()

    def waiting(self) -> int:
        """How many keys wait now, or did when a worker last took one if the queue is not known."""
        return self.depth if self.queue is None else len(self.queue)

    def running(self) -> list[float]:
        """How long each reconcile under way has been at it."""
        now = self._clock.monotonic()
        return [now - start for start in self._starts]


class WebhookMetrics:
    """Counts reviews by path; a `WebhookObserver`."""

    def __init__(self, families: _Families, paths: tuple[str, ...]) -> None:
        self._requests = families.reviews
        self._seconds = {path: families.review_seconds.labels(path) for path in paths}
        self._in_flight = {path: families.reviews_in_flight.labels(path) for path in paths}
        self._codes = {(path, code): self._requests.labels(path, str(code)) for path in paths for code in (200, 500)}

    def started(self, path: str) -> None:
        """A review came in."""
        self._in_flight[path].inc()

    def finished(self, path: str, code: int, seconds: float) -> None:
        """It was answered with this HTTP code."""
        self._in_flight[path].dec()
        self._seconds[path].observe(seconds)
        (self._codes.get((path, code)) or self._requests.labels(path, str(code))).inc()


class _QueueCollector(Collector):
    """Shows queues as they are when scraped, so that adding a key costs nothing."""

    def __init__(self, controllers: dict[str, ControllerMetrics]) -> None:
        self._controllers = controllers

    def collect(self) -> Iterator[Metric]:
        labels = ["name", "controller"]
        depth = GaugeMetricFamily("workqueue_depth", "Keys that wait.", labels=labels)
        adds = CounterMetricFamily("workqueue_adds", "Keys that came to wait, each once until taken.", labels=labels)
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "Seconds spent so far on work under way, in sum.", labels=labels
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "Seconds spent so far on the longest of it.", labels=labels
        )
        for name, controller in self._controllers.items():
            waiting, running = controller.waiting(), controller.running()
            depth.add_metric([name, name], waiting)
            adds.add_metric([name, name], controller.taken + waiting)
            unfinished.add_metric([name, name], sum(running))
            longest.add_metric([name, name], max(running, default=0.0))
        yield from (depth, adds, unfinished, longest)


class _Families:
    """The metric families, each declared once in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(name, text, labels, buckets=buckets, registry=registry)

        prefix = "controller_runtime"
        self.reconciles = counter(f"{prefix}_reconcile_total", "Reconciles by result.", "controller", "result")
        self.errors = counter(f"{prefix}_reconcile_errors_total", "Reconciles that failed.", "controller")
        self.terminal = counter(f"{prefix}_terminal_reconcile_errors_total", "Of these, not retried.", "controller")
        self.timeouts = counter(f"{prefix}_reconcile_timeouts_total", "Of these, over their deadline.", "controller")
        self.reconcile_seconds = histogram(
            f"{prefix}_reconcile_time_seconds", "How long a reconcile took.", RECONCILE_BUCKETS, "controller"
        )
        self.max_workers = gauge(f"{prefix}_max_concurrent_reconciles", "Workers there are.", "controller")
        self.active = gauge(f"{prefix}_active_workers", "Workers at work.", "controller")
        self.review_seconds = histogram(
            f"{prefix}_webhook_latency_seconds", "How long a review took.", WAIT_BUCKETS, "webhook"
        )
        self.reviews = counter(f"{prefix}_webhook_requests_total", "Reviews by HTTP code.", "webhook", "code")
        self.reviews_in_flight = gauge(f"{prefix}_webhook_requests_in_flight", "Reviews under way.", "webhook")
        queue = ("name", "controller")
        self.queue_seconds = histogram(
            "workqueue_queue_duration_seconds", "How long a key waited.", WAIT_BUCKETS, *queue
        )
        self.work_seconds = histogram(
            "workqueue_work_duration_seconds", "How long work on a key took.", WAIT_BUCKETS, *queue
        )
        self.retries = counter("workqueue_retries_total", "Keys put back after a failure.", *queue)
        self.requests = counter("rest_client_requests_total", "Requests to API servers.", "code", "method", "host")
        self.leading = gauge("leader_election_master_status", "1 while this process leads.", "name")
        self.lists = counter("reflector_lists_total", "Lists taken in whole.", "name")
        self.list_seconds = histogram("reflector_list_duration_seconds", "How long that took.", WAIT_BUCKETS, "name")
        self.objects = gauge("reflector_objects", "Objects in the store after the latest list.", "name")
        self.stream_failures = counter("reflector_failures_total", "Lists and watches that failed.", "name", "error")
        self.handler_failures = counter("reflector_handler_failures_total", "Handlers that raised.", "name", "error")
        self.loop_lag = gauge("event_loop_lag_seconds", "Largest lag of the event loop since the last scrape.")
        self.events_dropped = counter("events_dropped_total", "News of objects that was never written as an Event.")
