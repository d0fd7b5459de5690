"""One look at everything: this machine, the way to the cluster, the cluster; and what it all means."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from trainplane.client.aio import default_runtime
from trainplane.client.doctor.facts import Facts
from trainplane.client.doctor.judge import judge
from trainplane.client.doctor.machine import look_here
from trainplane.client.doctor.reading import read_access, read_cluster
from trainplane.kube.client import Client
from trainplane.kube.clock import SystemClock
from trainplane.kube.connection import ConnectionSettings
from trainplane.kube.errors import KubeError
from trainplane.kube.loading import load_config
from trainplane.kube.transport import TransportSettings

if TYPE_CHECKING:
    from trainplane.client.doctor.facts import Access, Cluster
    from trainplane.client.doctor.report import Report
    from trainplane.client.types.backends import KubernetesBackendConfig
    from trainplane.kube.clock import Clock

_SETTINGS = TransportSettings(attempts=2, patience_seconds=10.0, connection=ConnectionSettings(connect_seconds=5.0))
"""Who asks whether something works does not want to wait long for a no."""


async def examine(config: KubernetesBackendConfig, clock: Clock | None = None) -> Report:
    """Return whether a cluster is fit for the caller, in the namespace that the configuration names.

    Nothing is changed there, and nothing is raised for what cannot be reached or read: it is in the report.
    """
    clock = clock or SystemClock()
    machine, facts = await asyncio.gather(asyncio.to_thread(look_here), _read(config, clock))
    access, cluster, trouble = facts
    return judge(Facts(clock.now(), machine, default_runtime(), access, cluster, trouble))


async def _read(config: KubernetesBackendConfig, clock: Clock) -> tuple[Access | None, Cluster | None, str]:
    """Return how the cluster is reached and what it is, as far as that comes, and why it does not come further."""
    access = None
    try:
        chosen = config.client_configuration or load_config(config.config_file, context=config.context, clock=clock)
        access = await read_access(chosen)
        if config.namespace:
            access = replace(access, namespace=config.namespace)
        async with Client.connect(chosen, settings=_SETTINGS, clock=clock) as client:
            return access, await read_cluster(client, access.namespace, default_runtime(), clock), ""
    except KubeError as error:
        return access, None, str(error)
