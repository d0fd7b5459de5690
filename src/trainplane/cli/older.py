"""What the commands about older jobs share: which resources these are, how a cluster is reached, our release."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainplane.cli.connection import Connection
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource


def resources() -> list[Resource]:
    """Return the resources that older jobs are, runtimes of the older TrainJob shape first."""
    from trainplane.resources import (  # noqa: PLC0415 heavy
        LEGACY_JOBS,
        OLDER_CLUSTER_TRAINING_RUNTIMES,
        OLDER_TRAIN_JOBS,
        OLDER_TRAINING_RUNTIMES,
    )

    return [
        OLDER_CLUSTER_TRAINING_RUNTIMES,
        OLDER_TRAINING_RUNTIMES,
        OLDER_TRAIN_JOBS,
        *LEGACY_JOBS.values(),
    ]


def asked(connection: Connection, work: Callable[[Client], Any]) -> Any:
    """Return what `work` makes of the cluster that the arguments name."""
    from trainplane.kube.client import Client  # noqa: PLC0415 heavy
    from trainplane.kube.loading import load_config  # noqa: PLC0415 heavy

    async def connected() -> Any:
        async with Client.connect(load_config(connection.kubeconfig, context=connection.context)) as client:
            return await work(client)

    return asyncio.run(connected())


def initializers() -> str:
    """Return the image that fetches data, of this release."""
    import trainplane  # noqa: PLC0415 looks its version up
    from trainplane.api import names  # noqa: PLC0415 heavy

    return f"{names.INITIALIZERS_IMAGE}:v{trainplane.__version__}"
