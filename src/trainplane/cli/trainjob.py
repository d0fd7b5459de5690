"""What the commands about one TrainJob share: which it is, how its cluster is reached, and how a failure is told."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from trainplane.cli.output import Output

if TYPE_CHECKING:
    import argparse

    from trainplane.explain.facts import Facts


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare how the cluster is reached."""
    group = parser.add_argument_group("connection")
    group.add_argument("-n", "--namespace", metavar="NAME", help="the TrainJob's namespace (default: the context's)")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig of the cluster (default: as kubectl finds it)")
    group.add_argument("--context", metavar="NAME", help="context of the cluster (default: the current one)")


def collect(given: argparse.Namespace) -> Facts | None:
    """Return all that is known of the TrainJob that the arguments name; None if it cannot be read, which is told."""
    from trainplane.client.backends.kubernetes import KubernetesBackend  # noqa: PLC0415 heavy
    from trainplane.client.errors import TrainplaneError  # noqa: PLC0415 heavy
    from trainplane.client.types.backends import KubernetesBackendConfig  # noqa: PLC0415 heavy

    async def ask() -> Facts:
        config = KubernetesBackendConfig(namespace=given.namespace, config_file=given.kubeconfig, context=given.context)
        backend = KubernetesBackend(config)
        try:
            return await backend.collect(given.job)
        finally:
            await backend.close()

    try:
        return asyncio.run(ask())
    except TrainplaneError as error:
        Output(sys.stderr).line(f"trainplane: {error}")
        return None
