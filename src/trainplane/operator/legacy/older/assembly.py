"""What runs of the older shape: mirrors, controllers and their news, for the kinds that an admin wants served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.kube.controller import Controller, ControllerSettings, own_key
from trainplane.kube.reflector import Reflector
from trainplane.kube.resource import Key
from trainplane.legacy.older.lowering import meant_by
from trainplane.operator.legacy.older.mirrors import Mirrors
from trainplane.operator.legacy.older.reconcilers import Runtimes, TrainJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.metrics import Metrics
    from trainplane.kube.store import Change, Store
    from trainplane.operator.apply import Writer
    from trainplane.operator.stores import Stores

WORKERS: Final = 4
"""Objects of one kind worked on at once: each is a write or two in its life."""


class Older:
    """The older shape's part of the operator. `kinds` are the plurals of the resources that are served."""

    def __init__(
        self,
        kinds: Collection[str],
        client: Client,
        writer: Writer,
        stores: Stores,
        clock: Clock,
        *,
        metrics: Metrics,
        initializers: str,
        namespace: str | None = None,
    ) -> None:
        self.mirrors = mirrors = Mirrors()
        self._client, self._clock, self._metrics, self._namespace = client, clock, metrics, namespace
        jobs = TrainJobs(client, writer, mirrors, stores, clock, initializers=initializers)
        own = Runtimes(client, writer, mirrors.training_runtimes, stores.training_runtimes, clock)
        shared = Runtimes(client, writer, mirrors.cluster_training_runtimes, stores.cluster_training_runtimes, clock)
        self._stores = stores
        self._controllers = {
            store: self._controller(store, reconcile)
            for store, reconcile in (
                (mirrors.cluster_training_runtimes, shared.reconcile),
                (mirrors.training_runtimes, own.reconcile),
                (mirrors.train_jobs, jobs.reconcile),
            )
            if store.resource.plural in kinds and (store.resource.namespaced or namespace is None)
        }

    @property
    def controllers(self) -> list[Controller[Key]]:
        """What the leader runs."""
        return list(self._controllers.values())

    def reflectors(self) -> list[Reflector]:
        """Return a reflector for each mirror; a runtime is also news of the TrainJobs that mean it."""
        return [
            Reflector(
                self._client,
                store.resource,
                store,
                [controller.source(own_key), *self._to_users(store.resource.kind)],
                self._clock,
                namespace=self._namespace,
                observer=self._metrics,
            )
            for store, controller in self._controllers.items()
        ]

    def handlers(self) -> Mapping[Store, list[Callable[[Change], None]]]:
        """Return who wants news of today's objects, by their mirror: a TrainJob has the older one's name."""
        news: dict[Store, list[Callable[[Change], None]]] = {}
        jobs = self._controllers.get(self.mirrors.train_jobs)
        if jobs is not None:
            news[self._stores.train_jobs] = [jobs.source(self._known(self.mirrors.train_jobs))]
        for todays, store in (
            (self._stores.training_runtimes, self.mirrors.training_runtimes),
            (self._stores.cluster_training_runtimes, self.mirrors.cluster_training_runtimes),
        ):
            news[todays] = self._to_users(todays.resource.kind)
            if store in self._controllers:
                news[todays].append(self._controllers[store].source(self._known(store)))
        return news

    def _to_users(self, kind: str) -> list[Callable[[Change], None]]:
        jobs = self._controllers.get(self.mirrors.train_jobs)
        if jobs is None or kind == names.TRAIN_JOB:
            return []
        return [jobs.source(lambda change: self.mirrors.users(change, kind))]

    @staticmethod
    def _known(store: Store) -> Callable[[Change], Iterable[Key]]:
        """Return what maps one of today's objects to the older one that it was made of, if there is one."""

        def keys(change: Change) -> Iterable[Key]:
            namespace, name = change.key
            return [key for one in meant_by(name) if (key := Key(namespace, one)) in store]

        return keys

    def _controller(self, store: Store, reconcile: Callable[[Key], Any]) -> Controller[Key]:
        name = f"{store.resource.plural}_controller"
        controller = Controller(
            name,
            reconcile,
            self._clock,
            settings=ControllerSettings(workers=WORKERS),
            observer=self._metrics,
        )
        self._metrics.controller(name, queue=controller.queue, workers=WORKERS)
        return controller
