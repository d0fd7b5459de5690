"""Progress, put together: what the composition root starts, asks and stops."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from trainplane.kube.certificates import ManagedCertificates
from trainplane.operator.progress import history
from trainplane.operator.progress.authority import Authority
from trainplane.operator.progress.callers import Callers
from trainplane.operator.progress.history import History
from trainplane.operator.progress.reports import CONTROLLER, WRITERS, Reports
from trainplane.operator.progress.server import StatusServer
from trainplane.operator.progress.training import Trainings
from trainplane.render.plugins.trainjobstatus import TrainJobStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trainplane.kube.certificates import FileCertificates, ServingContext
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.metrics import Metrics
    from trainplane.kube.store import Change
    from trainplane.operator.apply import Writer
    from trainplane.operator.settings import Settings
    from trainplane.operator.stores import Stores

log = logging.getLogger(__name__)


class Progress:
    """All that serves progress in one replica; its requests never wait behind reconciles, nor those behind its."""

    def __init__(
        self,
        settings: Settings,
        client: Client,
        writer: Writer,
        stores: Stores,
        clock: Clock,
        *,
        leads: Callable[[], bool],
        is_synced: Callable[[], bool],
        serving: ServingContext,
        certificates: ManagedCertificates | FileCertificates,
        metrics: Metrics,
    ) -> None:
        from prometheus_client import Counter  # noqa: PLC0415 slow to import

        self.client, self.review_client = client.apart(), client.apart()
        answers = Counter(
            "trainplane_progress_reports_total",
            "Reports of progress, by the code that they were answered with.",
            ("code",),
            registry=metrics.registry,
        )
        self.reports = Reports(self.client, stores.train_jobs, clock, metrics)
        metrics.controller(CONTROLLER, queue=self.reports.controller.queue, workers=WRITERS)
        self.authority = Authority(_reader(certificates), leads, writer, stores, clock)
        self.trainings = Trainings(stores.pods)
        self.server = StatusServer(
            settings.status_server(),
            Callers(self.review_client, stores.pods, clock),
            self.reports,
            self.trainings,
            stores,
            tls=serving.context,
            is_synced=is_synced,
            answered=lambda code: answers.labels(str(code)).inc(),
        )
        self.history = History(client, writer, stores.train_jobs, clock, leads=leads, observer=metrics)
        metrics.controller(history.CONTROLLER, queue=self.history.controller.queue, workers=history.WRITERS)
        configuration = settings.configuration
        service = f"{configuration.cert_management.webhook_service_name}.{settings.namespace}.svc"
        address = f"https://{service}:{configuration.status_server.port}"
        self.plugin = TrainJobStatus(address)

    async def run(self) -> None:
        """Write reports and bring authorities, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.reports.run(), name="progress")
            group.create_task(self.authority.run(), name="authority")
            group.create_task(self.history.controller.run(), name="history")

    def changed(self, change: Change) -> None:
        """Take in a change of the TrainJob store."""
        self.reports.changed(change)
        self.history.changed(change)

    def check(self) -> str | None:
        """Return why pods cannot report yet."""
        return None if self.server.listener.serving else "the status server does not listen yet"


def authority_file(certificates: FileCertificates) -> Path:
    """Return where an admin who provides the certificate puts the authority that signed it."""
    return certificates.certificate.parent / "ca.crt"


def is_possible(certificates: ManagedCertificates | FileCertificates) -> bool:
    """Return whether pods can know the server: by our own authority, or by one that an admin put beside the files."""
    if isinstance(certificates, ManagedCertificates) or authority_file(certificates).is_file():
        return True
    log.warning(
        "pods cannot report progress: there is no authority by which they would know the status server",
        extra={"missing": str(authority_file(certificates)), "gate": "TrainJobStatus"},
    )
    return False


def _reader(certificates: ManagedCertificates | FileCertificates) -> Callable[[], bytes]:
    if isinstance(certificates, ManagedCertificates):
        return lambda: certificates.bundle
    path = authority_file(certificates)

    def read() -> bytes:
        try:
            return path.read_bytes()
        except OSError:  # swapped at this moment: what was read before stays
            return b""

    return read
