"""The same client for code without an event loop: scripts, notebooks, the SDK.

One thread runs one loop; each call hands a coroutine to it and waits. The caller's own loop, a notebook's say, is not
touched.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from trainplane.kube.client import Client, Tree
from trainplane.kube.loopthread import LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from typing import Self

    from typing_extensions import TypeVar

    from trainplane.kube.config import Config
    from trainplane.kube.transport import TransportSettings

P = ParamSpec("P")
if TYPE_CHECKING:
    R = TypeVar("R", default=Tree)
else:
    from typing import TypeVar

    R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncClient, P], R]:
    """Return a method of SyncClient that runs the client's to its end."""

    @functools.wraps(method)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(method(self.client, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[Client, P], AsyncGenerator[R, None]],
) -> Callable[Concatenate[SyncClient, P], Generator[R, None, None]]:
    """Return a method of SyncClient that iterates over the client's; closing the iterator closes the stream."""

    @functools.wraps(method)
    def iterate(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Generator[R, None, None]:
        return self.loop.iterate(method(self.client, *args, **kwargs))

    return iterate


class SyncClient:
    """`Client` without await. Use `with`, or `close` it; calls from several threads run side by side.

    An interrupt (Ctrl-C) during a call cancels the request. A child made by fork cannot use its parent's client and
    is told so: the thread that runs the loop stayed behind.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.loop = LoopThread("SyncClient")

    @classmethod
    def connect(cls, config: Config | None = None, *, settings: TransportSettings | None = None) -> Self:
        """Return a client of `config`, or of the cluster that kubectl would use here. Nothing is sent yet."""
        return cls(Client.connect(config, settings=settings))

    get = _blocking(Client.get)
    list_all = _blocking(Client.list_all)
    list_pages = _iterating(Client.list_pages)
    watch = _iterating(Client.watch)
    create = _blocking(Client.create)
    replace = _blocking(Client.replace)
    apply = _blocking(Client.apply)
    apply_status = _blocking(Client.apply_status)
    patch = _blocking(Client.patch)
    delete = _blocking(Client.delete)
    delete_collection = _blocking(Client.delete_collection)
    logs = _iterating(Client.logs)
    exec = _blocking(Client.exec)
    raw = _blocking(Client.raw)
    version = _blocking(Client.version)

    @property
    def namespace(self) -> str:
        """The namespace of calls that address an object and name none."""
        return self.client.namespace

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine on the client's loop and return its result."""
        return self.loop.run(work)

    def close(self) -> None:
        """Close every connection and end the thread; closing twice does nothing."""
        self.loop.close(self.client.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
