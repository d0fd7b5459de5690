"""What the fleet's commands share: their arguments, the connections they name, and how a failure is told."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, TypeVar

from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.config import Config

T = TypeVar("T")


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Declare how the hub and the workers are reached."""
    group = parser.add_argument_group("connection")
    group.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig of the hub (default: as kubectl finds it)")
    group.add_argument("--context", metavar="NAME", help="context of the hub (default: the current one)")
    group.add_argument(
        "--worker",
        metavar="NAME[=CONTEXT]",
        action="append",
        type=_pair,
        default=[],
        help="use this context of yours for worker NAME, by default the one of that name, instead of MultiKueue's own "
        "credentials; may be repeated",
    )
    group.add_argument(
        "--kueue-namespace",
        metavar="NAME",
        default="kueue-system",
        help="where Kueue runs on the hub, with the workers' Secrets (default: %(default)s)",
    )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_seconds,
        default=5.0,
        help="how long a cluster may take to connect (default: %(default)g)",
    )


def ask(
    work: Callable[[Client, Workers, dict[str, Client]], Coroutine[None, None, T]], given: argparse.Namespace
) -> T | None:
    """Run `work` with the clients that the arguments name; None if the hub cannot be asked, which is then told."""
    from trainplane.hub.errors import HubError  # noqa: PLC0415 heavy
    from trainplane.kube.errors import KubeError  # noqa: PLC0415 heavy

    async def connected() -> T:
        async with _clients(given) as (hub, workers, admin_clients):
            return await work(hub, workers, admin_clients)

    try:
        return asyncio.run(connected())
    except (HubError, KubeError) as error:
        Output(sys.stderr).line(f"trainplane: {error}")
        return None


@contextlib.asynccontextmanager
async def _clients(given: argparse.Namespace) -> AsyncIterator[tuple[Client, Workers, dict[str, Client]]]:
    from trainplane.hub.workers import Workers  # noqa: PLC0415 heavy
    from trainplane.kube.client import Client  # noqa: PLC0415 heavy
    from trainplane.kube.connection import ConnectionSettings  # noqa: PLC0415 heavy
    from trainplane.kube.loading import load_config  # noqa: PLC0415 heavy
    from trainplane.kube.transport import TransportSettings  # noqa: PLC0415 heavy

    settings = TransportSettings(
        attempts=2, patience_seconds=given.timeout, connection=ConnectionSettings(connect_seconds=given.timeout)
    )

    def connect(config: Config) -> Client:
        return Client.connect(config, settings=settings)

    async with contextlib.AsyncExitStack() as stack:
        hub = await stack.enter_async_context(connect(load_config(given.kubeconfig, context=given.context)))
        admin_clients = {
            name: await stack.enter_async_context(connect(load_config(given.kubeconfig, context=context)))
            for name, context in given.worker
        }
        workers = Workers(hub, namespace=given.kueue_namespace, connect=connect)
        yield hub, await stack.enter_async_context(workers), admin_clients


def _pair(text: str) -> tuple[str, str]:
    name, separator, context = text.partition("=")
    if not name or (separator and not context):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME or NAME=CONTEXT, as in worker1=admin@worker1")
    return name, context or name


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
