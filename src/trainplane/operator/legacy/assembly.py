"""Jobs of older kinds, put together: what the composition root starts and asks. Nothing, unless a kind is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api.legacy import names
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.kube.controller import own_key
from trainplane.kube.reflector import Reflector
from trainplane.legacy.decide import decide
from trainplane.legacy.decision import INIT_IMAGE, Settings
from trainplane.operator.legacy import webhooks
from trainplane.operator.legacy.jobs import LegacyJobReconciler
from trainplane.operator.legacy.metrics import JobMetrics
from trainplane.operator.legacy.mirrors import Mirrors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trainplane.api.configuration import Configuration
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.controller import Controller, Result
    from trainplane.kube.eventmerger import Recorder
    from trainplane.kube.metrics import Metrics
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change
    from trainplane.kube.webhook import Conversion, Review
    from trainplane.operator.apply import Writer

    Run = Callable[[str, str, Callable[[Key], Awaitable[Result]]], Controller[Key]]


class LegacyJobs:
    """All that serves jobs of older kinds in one replica."""

    def __init__(
        self,
        configuration: Configuration,
        client: Client,
        writer: Writer,
        recorder: Recorder,
        clock: Clock,
        *,
        metrics: Metrics,
        run: Run,
    ) -> None:
        """Put it together; `run` makes the controller of a name and a kind."""
        self.kinds = [BY_PLURAL[plural] for plural in dict.fromkeys(configuration.legacy.kinds) if plural in BY_PLURAL]
        self._client, self._clock, self._metrics = client, clock, metrics
        self._settings = settings = settings_of(configuration)
        self.mirrors = mirrors = Mirrors(self.kinds, settings.gang)
        counts = JobMetrics(metrics.registry)
        self._reconcilers = {
            kind.name: LegacyJobReconciler(kind, mirrors, client, writer, recorder, counts, clock, settings, decide)
            for kind in self.kinds
        }
        self._controllers = {
            name: run(f"{name.lower()}_controller", name, one.reconcile) for name, one in self._reconcilers.items()
        }

    @property
    def controllers(self) -> list[Controller[Key]]:
        """Those that work on jobs, one for each kind."""
        return list(self._controllers.values())

    def reflectors(self, namespace: str | None) -> list[Reflector]:
        """Return a reflector per mirror, of one namespace or all; what others refer to comes first."""
        if not self.kinds:
            return []
        jobs = {store: self._controllers[kind].source(own_key) for kind, store in self.mirrors.jobs.items()}
        return [
            Reflector(
                self._client,
                store.resource,
                store,
                [jobs.get(store, self._changed)],
                self._clock,
                namespace=namespace,
                labels=names.LABEL_JOB_NAME if store is self.mirrors.pods else None,
                observer=self._metrics,
            )
            for store in self.mirrors.all()
        ]

    def routes(self) -> Mapping[str, Review]:
        """Return the reviews, by path."""
        return webhooks.routes(self.kinds, self._settings)

    def conversions(self) -> Mapping[str, Conversion]:
        """Return the conversions, by path."""
        return webhooks.conversions(self.kinds)

    def _changed(self, change: Change) -> None:
        """Queue the job of an object that changed; of those of others, nobody's."""
        for kind, key in self.mirrors.jobs_of(change):
            self._controllers[kind].queue.add_after(key, self._reconcilers[kind].patience(key))


def settings_of(configuration: Configuration) -> Settings:
    """Return what an admin decides for all jobs of older kinds."""
    said = configuration.legacy
    return Settings(
        cluster_domain=said.cluster_domain,
        gang=said.gang_scheduler_name,
        job_managed_by=configuration.enabled(names.GATE_MANAGED_BY),
        init_image=said.init_image or INIT_IMAGE,
    )
