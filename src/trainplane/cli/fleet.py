"""What the fleet's commands share: their arguments, the connections they name, and how a failure is told."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from trainplane.hub.workers import Workers
    from trainplane.kube.client import Client
    from trainplane.kube.config import Config

T = TypeVar("T")


def _pair(text: str) -> str:
    name, separator, context = text.partition("=")
    if not name or (separator and not context):
        raise typer.BadParameter(f"{text!r} is not NAME or NAME=CONTEXT, as in worker1=admin@worker1")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 3600:
        raise typer.BadParameter(f"{text!r} is no number of seconds above 0")
    return seconds


WorkerContexts = Annotated[
    list[str] | None,
    typer.Option(
        "--worker",
        metavar="NAME[=CONTEXT]",
        parser=_pair,
        help="Use this context of yours for worker NAME, by default the one of that name, instead of MultiKueue's own "
        "credentials; may be repeated.",
        show_default=False,
    ),
]
KueueNamespace = Annotated[
    str,
    typer.Option("--kueue-namespace", metavar="NAME", help="Where Kueue runs on the hub, with the workers' Secrets."),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", parser=_seconds, help="How long a cluster may take to connect."),
]


@dataclass(frozen=True)
class Fleet:
    """How the hub and the workers are reached, by the arguments."""

    context: str | None
    kubeconfig: str | None
    workers: list[str]
    kueue_namespace: str
    timeout: float


def ask(work: Callable[[Client, Workers, dict[str, Client]], Coroutine[None, None, T]], fleet: Fleet) -> T:
    """Return what `work` makes of the clients that the arguments name.

    Raises:
        HubError, KubeError: the hub cannot be asked.
    """

    async def connected() -> T:
        async with _clients(fleet) as (hub, workers, admin_clients):
            return await work(hub, workers, admin_clients)

    return asyncio.run(connected())


@contextlib.asynccontextmanager
async def _clients(fleet: Fleet) -> AsyncIterator[tuple[Client, Workers, dict[str, Client]]]:
    from trainplane.hub.workers import Workers  # noqa: PLC0415 heavy
    from trainplane.kube.client import Client  # noqa: PLC0415 heavy
    from trainplane.kube.connection import ConnectionSettings  # noqa: PLC0415 heavy
    from trainplane.kube.loading import load_config  # noqa: PLC0415 heavy
    from trainplane.kube.transport import TransportSettings  # noqa: PLC0415 heavy

    settings = TransportSettings(
        attempts=2, patience_seconds=fleet.timeout, connection=ConnectionSettings(connect_seconds=fleet.timeout)
    )

    def connect(config: Config) -> Client:
        return Client.connect(config, settings=settings)

    async with contextlib.AsyncExitStack() as stack:
        hub = await stack.enter_async_context(connect(load_config(fleet.kubeconfig, context=fleet.context)))
        admin_clients = {
            name: await stack.enter_async_context(connect(load_config(fleet.kubeconfig, context=context)))
            for name, context in map(_contexts, fleet.workers)
        }
        workers = Workers(hub, namespace=fleet.kueue_namespace, connect=connect)
        yield hub, await stack.enter_async_context(workers), admin_clients


def _contexts(pair: str) -> tuple[str, str]:
    name, _, context = pair.partition("=")
    return name, context or name
