"""The composition root: everything that runs in the operator's process, and what depends on what.

    client ─┬─ certificates ─► TLS of webhooks and metrics
            ├─ health, metrics   every replica, from the start
            ├─ reflectors        every replica: a follower's mirrors are warm
            ├─ controllers       the leader, once the mirrors are in sync
            └─ events            the leader's
    client of its own ─ lease    renewals never wait behind reconciles
    client of its own ─ webhooks every replica, from the start; nor do the reads of a review
    client of its own ─ progress every replica, from the start: reports of pods, and their way into statuses

It ends on SIGTERM or SIGINT: readiness fails, controllers finish what they are at, the Lease is given back, webhooks
serve on until no API server should ask this replica any more, servers close. A second signal ends the serving on. A
leader that loses its Lease, a Kubernetes that is too old, or any part that breaks, ends the process with an error;
whoever runs it starts it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainplane.api import names
from trainplane.kube.certificates import FileCertificates, ManagedCertificates
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.controller import Controller, ControllerSettings, own_key
from trainplane.kube.eventmerger import EventMerger
from trainplane.kube.events import EventRecorder, EventSettings
from trainplane.kube.health import HealthServer, LoopLag
from trainplane.kube.lease import LeaderElector
from trainplane.kube.loading import load_config
from trainplane.kube.manager import Manager
from trainplane.kube.metrics import Metrics
from trainplane.kube.pathaccess import PathAccess
from trainplane.kube.reflector import Reflector
from trainplane.kube.transport import Transport
from trainplane.kube.webhook import WebhookServer
from trainplane.lifecycle import events
from trainplane.operator import pods, serving
from trainplane.operator.apply import Writer, always
from trainplane.operator.kubernetes import insist_on_supported
from trainplane.operator.legacy.assembly import LegacyJobs
from trainplane.operator.legacy.older.assembly import Older
from trainplane.operator.metrics import TrainJobMetrics
from trainplane.operator.owned import OwnedMirrors
from trainplane.operator.progress.assembly import Progress, is_possible
from trainplane.operator.progress.reports import is_progress_alone
from trainplane.operator.runtimes import FinalizerRemover, Runtimes
from trainplane.operator.snapshot import Snapshots
from trainplane.operator.stores import Stores
from trainplane.operator.trainjob import TrainJobReconciler
from trainplane.operator.webhooks import Webhooks
from trainplane.render.pipeline import Pipeline
from trainplane.render.plugins.cache import Cache
from trainplane.render.plugins.output import Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from trainplane.kube.certificates import ServingContext
    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.listener import Listener
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change, Store
    from trainplane.operator.settings import Settings
    from trainplane.render.plugin import Plugin

log = logging.getLogger(__name__)

TRAIN_JOB_CONTROLLER = "trainjob_controller"
TRAINING_RUNTIME_CONTROLLER = "trainingruntime_controller"
CLUSTER_TRAINING_RUNTIME_CONTROLLER = "clustertrainingruntime_controller"

COMPONENT = "trainer-trainjob-controller"
"""Who records Events; the reference's recorder has the same name."""

EVENT_SETTINGS = EventSettings(writers=2, waiting=16384, burst=100)
"""News gives way to work: two writes at once take little from an API server that is busy with a thousand new TrainJobs,
and what they bring waits (some 12 MB at most) until it is not. 5,000 TrainJobs that end as they begin bring 10,000."""

UNHURRIED_NEWS = dict.fromkeys((events.CREATED, events.SUSPENDED, events.SCHEDULED), 30.0)
"""Seconds that news of a TrainJob which does not run yet waits for more; its phase says the same at once."""

BUSY_TRAIN_JOBS = 4
"""TrainJobs being looked at, or waiting for it, above which news waits: a burst, and not the daily coming and going."""

LAST_WORDS_SECONDS = 3.0
"""How long news that was recorded may still take to be written at the end: well within a pod's 30 seconds."""


@dataclass
class Operator:
    """One replica of the operator, put together. `run` runs it until `stop`."""

    settings: Settings
    client: Client
    clock: Clock = field(default_factory=SystemClock)
    pipeline: Pipeline | None = None
    """What TrainJobs are rendered with; None: all plugins that are installed, and the bound that the settings say."""
    metrics: Metrics = field(default_factory=lambda: Metrics(SystemClock()))

    def __post_init__(self) -> None:
        clock, client, configuration = self.clock, self.client, self.settings.configuration
        self.stores = Stores()
        self.owned = OwnedMirrors()
        self.lag = LoopLag(clock)
        self.metrics.loop_lag(self.lag.take_worst)
        lease = self.settings.lease()
        self.lease_client, self.review_client = client.apart(), client.apart()
        self.elector = None if lease is None else LeaderElector(self.lease_client, lease, clock)
        self._ended = asyncio.Event()
        if self.elector is not None and lease is not None:
            self.metrics.leading(lease.name, self.elector.is_leader)
        leads = always if self.elector is None else self.elector.is_leader
        writer = Writer(client, leads)
        self.tls: ServingContext = serving.serving_context(configuration.tls)
        self.certificates = serving.certificates(self.settings, client, self.tls, clock)
        self.progress = self._progress(writer, leads)
        output = Output(self.settings.output_image(), can_ask=self.progress is not None)
        also: list[Plugin] = [output, Cache(self.settings.cache_image())]
        also += [] if self.progress is None else [self.progress.plugin]
        self.pipeline = pipeline = self.pipeline or Pipeline.default(
            most_pods=configuration.limits.pods_per_train_job, also=also
        )
        runtimes = Runtimes(client, self.stores)
        snapshots = Snapshots(client, writer, runtimes)
        self.recorder = EventRecorder(
            client, clock, COMPONENT, settings=EVENT_SETTINGS, busy=self._busy, on_dropped=self.metrics.event_dropped
        )
        self.news = EventMerger(self.recorder, clock, longer=UNHURRIED_NEWS, last=frozenset({events.COMPLETED}))
        self.train_job_metrics = TrainJobMetrics(self.metrics.registry)
        train_jobs = TrainJobReconciler(
            client,
            writer,
            self.stores,
            snapshots,
            pipeline,
            self.news,
            self.train_job_metrics,
            clock,
            self.owned,
            self._busy,
            None if self.progress is None else self.progress.authority.ensure,
        )
        self.chronicle = train_jobs.chronicle
        self.after = train_jobs.after
        self.lost = train_jobs.lost
        stores = self.stores
        self.train_jobs = self._controller(TRAIN_JOB_CONTROLLER, names.TRAIN_JOB, train_jobs.reconcile)
        self.training_runtimes = self._controller(
            TRAINING_RUNTIME_CONTROLLER,
            names.TRAINING_RUNTIME,
            FinalizerRemover(writer, stores.training_runtimes).reconcile,
        )
        self.cluster_training_runtimes = self._controller(
            CLUSTER_TRAINING_RUNTIME_CONTROLLER,
            names.CLUSTER_TRAINING_RUNTIME,
            FinalizerRemover(writer, stores.cluster_training_runtimes).reconcile,
        )
        self.legacy_jobs = LegacyJobs(
            configuration, client, writer, self.news, clock, metrics=self.metrics, run=self._legacy_controller
        )
        self.older = Older(
            configuration.legacy.kinds,
            client,
            writer,
            stores,
            clock,
            metrics=self.metrics,
            initializers=self.settings.output_image(),
            namespace=self.settings.watch_namespace,
        )
        self.reflectors = [
            *self._reflectors(),
            *self.owned.reflectors(
                client, self._owned_changed, clock, namespace=self.settings.watch_namespace, observer=self.metrics
            ),
            *self.legacy_jobs.reflectors(self.settings.watch_namespace),
            *self.older.reflectors(),
        ]
        self.manager = Manager(
            self.reflectors,
            [
                self.train_jobs,
                self.training_runtimes,
                self.cluster_training_runtimes,
                *self.legacy_jobs.controllers,
                *self.older.controllers,
            ],
        )
        reviewed = Runtimes(self.review_client, self.stores)
        kept = Snapshots(self.review_client, writer, reviewed)
        allowed = configuration.admission.allowed_runtime_patches
        reviews = Webhooks(
            self.review_client,
            reviewed,
            kept,
            pipeline,
            clock,
            job_sets=self.stores.job_sets,
            allowed_patches=allowed,
        )
        routes = {**reviews.routes(), **self.legacy_jobs.routes()}
        conversions = self.legacy_jobs.conversions()
        self.webhooks = WebhookServer(
            routes,
            self.settings.webhook(),
            conversions=conversions,
            tls=self.tls.context,
            observer=self.metrics.webhook(*routes, *conversions),
        )

    def _progress(self, writer: Writer, leads: Callable[[], bool]) -> Progress | None:
        if not self.settings.configuration.enabled("TrainJobStatus") or not is_possible(self.certificates):
            return None
        return Progress(
            self.settings,
            self.client,
            writer,
            self.stores,
            self.clock,
            leads=leads,
            is_synced=lambda: self._mirrors_check() is None,
            serving=self.tls,
            certificates=self.certificates,
            metrics=self.metrics,
        )

    async def _calm(self) -> None:
        """Let reviews go before reconciles: they share one event loop, and whoever creates a TrainJob waits."""
        await self.webhooks.calm()

    def _busy(self) -> bool:
        """Return whether many TrainJobs want something at once: their news waits."""
        return self.train_jobs.queue.pending > BUSY_TRAIN_JOBS

    def _legacy_controller(self, name: str, kind: str, reconcile: Callable[[Key], Awaitable[Any]]) -> Controller[Key]:
        return self._controller(name, kind, reconcile, names.LEGACY_GROUP)

    def _controller(
        self, name: str, kind: str, reconcile: Callable[[Key], Awaitable[Any]], group: str = names.GROUP
    ) -> Controller[Key]:
        workers = self.settings.workers(kind, group)
        controller = Controller(
            name,
            reconcile,
            self.clock,
            settings=ControllerSettings(workers=workers),
            observer=self.metrics,
            give_way=self._calm,
        )
        self.metrics.controller(name, queue=controller.queue, workers=workers)
        return controller

    def _reflectors(self) -> list[Reflector]:
        """Return a reflector per mirror; a JobSet has its TrainJob's name, so its changes are news of that key.

        An operator of one namespace mirrors what is in it, and may not ask for what is in none.
        """
        stores, scope = self.stores, self.settings.watch_namespace
        handlers: list[tuple[Store, list[Any]]] = [
            (stores.cluster_training_runtimes, [self.cluster_training_runtimes.source(own_key)]),
            (stores.training_runtimes, [self.training_runtimes.source(own_key)]),
            (stores.pods, [self._pod_changed]),
            (stores.job_sets, [self.train_jobs.source(own_key)]),
            (stores.train_jobs, [self.train_job_metrics.changed, self.train_jobs.source(own_key)]),
        ]
        if self.progress is not None:
            handlers[-1] = (
                stores.train_jobs,
                [self.train_job_metrics.changed, self._train_job_changed, self.progress.changed],
            )
        handlers[-1][1].append(self.chronicle.changed)
        handlers[-1][1].append(self.lost.train_job_changed)
        handlers[-1][1].append(self.train_jobs.source(self.after.followers))
        older = self.older.handlers()
        for store, handled in handlers:
            handled.extend(older.get(store, ()))
        return [
            Reflector(
                self.client,
                store.resource,
                store,
                handled,
                self.clock,
                namespace=scope,
                labels=names.LABEL_JOBSET_NAME if store is stores.pods else None,
                observer=self.metrics,
            )
            for store, handled in handlers
            if store.resource.namespaced or scope is None
        ]

    def _owned_changed(self, store: Store, change: Change) -> None:
        """Queue the TrainJob of which somebody deleted or changed an object."""
        news = self.lost.changed(store, change)
        if news is not None:
            self.train_jobs.queue.add_after(*news)

    def _pod_changed(self, change: Change) -> None:
        """Queue the TrainJob of a pod that changed; pods of other JobSets are nobody's news."""
        news = pods.news(change)
        if news is None or news[0] not in self.stores.train_jobs:
            return
        self.train_jobs.queue.add_after(*news)
        if self.progress is not None:
            self.progress.trainings.changed(news[0])

    def _train_job_changed(self, change: Change) -> None:
        """Queue a TrainJob that changed, unless only its progress did: of 2,000 that report, 200 a second."""
        if not is_progress_alone(change):
            self.train_jobs.source(own_key)(change)

    def stop(self) -> None:
        """Ask `run` to come to its end; asked again, not to wait for late reviews."""
        if self.manager.stopping:
            self._ended.set()
        self.webhooks.listener.drain()
        if self.progress is not None:
            self.progress.trainings.close()
            self.progress.server.listener.drain()
        self.manager.stop()

    async def run(self) -> None:
        """Run until `stop`; raises what broke."""
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.lease_client)
            await stack.enter_async_context(self.review_client)
            await stack.enter_async_context(self.webhooks.listener)
            if self.progress is not None:
                await stack.enter_async_context(self.progress.client)
                await stack.enter_async_context(self.progress.review_client)
            for listener in self._listeners():
                await stack.enter_async_context(listener)
            if isinstance(self.certificates, FileCertificates):
                self.certificates.load()
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(insist_on_supported(self.client, self.clock), name="kubernetes"),
                    group.create_task(self.lag.run(), name="loop-lag"),
                    group.create_task(self.certificates.run(), name="certificates"),
                    group.create_task(self.recorder.run(), name="events"),
                    group.create_task(self.news.run(), name="merged-events"),
                    *(group.create_task(reflector.run()) for reflector in self.certificates.reflectors(self.client)),
                ]
                if self.progress is not None:
                    helpers.append(group.create_task(self.progress.run(), name="progress"))
                leading: list[asyncio.Task[Any]] = []
                lead = None if self.elector is None else self._leader(self.elector, group, leading)
                await self.manager.run(lead, lambda: self._close(leading))
                for helper in helpers:
                    helper.cancel()

    async def _close(self, leading: list[asyncio.Task[Any]]) -> None:
        """Write the last events, give the Lease back, and answer reviews until no API server sends any."""
        stopped_at = self.clock.monotonic()
        self.news.flush()
        with contextlib.suppress(TimeoutError):
            async with self.clock.timeout(LAST_WORDS_SECONDS):
                await self.recorder.drain()
        for task in leading:
            task.cancel()
            await asyncio.wait({task})
        if self.elector is not None:
            await self.elector.release()
        left = stopped_at + self.settings.shutdown_delay - self.clock.monotonic()
        with contextlib.suppress(TimeoutError):
            async with self.clock.timeout(max(0.0, left)):
                await self._ended.wait()
        if self.progress is not None:
            await self.progress.reports.flush(LAST_WORDS_SECONDS)

    def _leader(
        self, elector: LeaderElector, group: asyncio.TaskGroup, leading: list[asyncio.Task[Any]]
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        async def lead() -> None:
            await elector.acquire()
            leading.append(group.create_task(elector.keep(), name="lease"))

        return lead

    def _listeners(self) -> list[Listener]:
        configuration = self.settings.configuration
        listeners = [] if self.progress is None else [self.progress.server.listener]
        health = self.settings.health()
        if health is not None:
            server = HealthServer(
                health,
                live={"event-loop": self.lag.check},
                ready={
                    "certificates": self._certificates_check,
                    "webhooks": self._webhooks_check,
                    **({} if self.progress is None else {"status-server": self.progress.check}),
                    "mirrors": self._mirrors_check,
                    "stopping": self._stopping_check,
                },
                live_path=f"/{configuration.health.liveness_endpoint_name}",
                ready_path=f"/{configuration.health.readiness_endpoint_name}",
            )
            listeners.append(server.listener)
        metrics = self.settings.metrics()
        if metrics is not None:
            secure = configuration.metrics.secure_serving
            access = PathAccess(self.client, self.clock) if secure and configuration.metrics.auth.enabled else None
            tls = self.tls.context if secure else None
            listeners.append(self.metrics.server(metrics, tls=tls, access=access))
        return listeners

    def _certificates_check(self) -> str | None:
        return None if self.tls.loaded else "there is no serving certificate yet"

    def _webhooks_check(self) -> str | None:
        return None if self.webhooks.listener.serving else "the webhook server does not listen yet"

    def _stopping_check(self) -> str | None:
        return "this replica was told to end: others answer" if self.manager.stopping else None

    def _mirrors_check(self) -> str | None:
        missing = [reflector.resource.plural for reflector in self.reflectors if not reflector.settled.is_set()]
        return f"not listed yet: {', '.join(missing)} (are their CRDs installed?)" if missing else None


async def serve(settings: Settings) -> None:
    """Run one replica until it is told to end."""
    config: Config = load_config(settings.kubeconfig)
    metrics = Metrics(SystemClock())
    transport = Transport(config, requested=metrics.requested)
    async with Client(transport, field_manager=names.FIELD_MANAGER) as client:
        operator = Operator(settings, client, metrics=metrics)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, operator.stop)
        log.info(
            "operator starts",
            extra={
                "server": config.server,
                "namespace": settings.namespace,
                "workers": settings.workers(names.TRAIN_JOB),
                "elects": operator.elector is not None,
                "manages_certificates": isinstance(operator.certificates, ManagedCertificates),
            },
        )
        await operator.run()
        log.info("operator ended")
