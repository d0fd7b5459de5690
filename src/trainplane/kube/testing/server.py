"""A fake API server on loopback, real HTTP, that misbehaves on request.

```python
async with FakeServer() as server, server.client() as client:
    server.put(PODS, {"metadata": {"name": "a", "namespace": "default"}})
    server.add_fault(Refuse(code=429, retry_after=1, verb="list"))
    pods = await client.list_all(PODS)
```

Any resource of any group exists. `put` and `remove` change the store without HTTP; what the server was asked is in
`requests`. Events of one such change are with the watchers as soon as the loop runs.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from aiohttp import web

from trainplane.kube.client import Client
from trainplane.kube.config import Config
from trainplane.kube.credentials import StaticCredentials, bearer
from trainplane.kube.errors import ApiError, UnauthorizedError, error_class
from trainplane.kube.resource import Key, Resource
from trainplane.kube.testing.faults import Drop, Fault, Hang, Pad, Refuse, Stale, Verb
from trainplane.kube.testing.podserver import PodServer
from trainplane.kube.testing.storage import Storage, Tree
from trainplane.kube.testing.verbs import Asking, Target, act, collection_of, target_of, verb_of
from trainplane.kube.testing.watching import Watching, padded, status_of
from trainplane.kube.transport import Transport, TransportSettings

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Self

    from trainplane.kube.clock import Clock

_TURNS = 4
"""Of the loop: more than it takes until a connection that was accepted is aiohttp's, or one that was aborted closed."""


async def _turns() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class Asked(NamedTuple):
    """A request that the server got."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    verb: Verb


@dataclass
class FakeServer:
    """See the module's docstring. `tokens`, once set, are the only ones let in."""

    storage: Storage = field(default_factory=Storage)
    tokens: set[str] | None = None
    tls: ssl.SSLContext | None = None
    pods: PodServer = field(default_factory=PodServer)
    version: str = "v1.99.0-fake"
    """What it says that it is."""
    requests: list[Asked] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.watching = Watching(self.storage)
        self._runner: web.AppRunner | None = None
        self._socket: socket.socket | None = None
        self._port = 0

    async def start(self) -> None:
        """Listen on a free port, or on the former one after a `stop`."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.05)
        await self._runner.setup()
        self._socket = socket.create_server(("127.0.0.1", self._port))
        await web.SockSite(self._runner, self._socket, ssl_context=self.tls).start()
        self._port = self._socket.getsockname()[1]

    async def stop(self) -> None:
        """Cut all watches and stop listening, and wait until no connection is left; what is stored stays.

        aiohttp and asyncio forget two kinds: those with bytes that nobody reads, and those that came as it stopped. A
        test's loop ends right after, and another test would be blamed for what was left open.
        """
        self.watching.cut()
        if self._runner is None or self._socket is None:
            return
        runner, self._runner = self._runner, None
        asyncio.get_running_loop().remove_reader(self._socket)
        await _turns()
        transports = [] if runner.server is None else [one.transport for one in runner.server.connections]
        await runner.cleanup()
        for one in transports:
            if one is not None:
                one.abort()
        await _turns()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self._port}"

    def config(self, **changes: Any) -> Config:
        """Return a Config of this server, with the first of its tokens."""
        if self.tokens:
            changes.setdefault("credentials", StaticCredentials(bearer(min(self.tokens))))
        return Config(server=self.url, **changes)

    def client(
        self,
        *,
        settings: TransportSettings | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = lambda: 0.5,
    ) -> Client:
        """Return a client of this server, without randomness."""
        return Client(Transport(self.config(), settings=settings, clock=clock, jitter=jitter))

    def add_fault(self, fault: Fault) -> None:
        """Misbehave so, from the next request on."""
        self.faults.append(fault)

    def put(self, resource: Resource, obj: Tree) -> Tree:
        """Store an object as it is, without HTTP; returns it with its resourceVersion."""
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        stored = self.storage.put(collection_of(resource), full)
        self.watching.wake()
        return stored

    def remove(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """Delete an object without HTTP, as the last finalizer's removal would."""
        removed = self.storage.delete(collection_of(resource), Key(namespace, name))
        self.watching.wake()
        return removed

    def objects(self, resource: Resource) -> dict[Key, Tree]:
        """Return what is stored of a resource."""
        return dict(self.storage.objects.get(collection_of(resource), {}))

    def asked(self, verb: Verb | None = None, plural: str | None = None) -> list[Asked]:
        """Return the requests so far of a verb, of a resource."""
        return [
            request
            for request in self.requests
            if (verb is None or request.verb == verb) and (plural is None or f"/{plural}" in request.path)
        ]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        target = target_of(request.path)
        verb = verb_of(request.method, request.query, target)
        body = await request.read()
        query = dict(request.query)
        self.requests.append(Asked(request.method, request.path, query, dict(request.headers), body, verb))
        fault = self._take_fault(verb, target, query)
        try:
            self._let_in(request)
            if isinstance(fault, Refuse):
                raise error_class(fault.code, fault.reason)(
                    "refused on purpose", code=fault.code, reason=fault.reason or None, retry_after=fault.retry_after
                )
            if isinstance(fault, Hang):
                await asyncio.Event().wait()
            if isinstance(fault, Drop) and not fault.acted:
                return _drop(request)
            if verb == "watch" and target is not None:
                return await self.watching.serve(request, target.collection, target.namespace, fault)
            if target is not None and target.subresource in {"log", "exec"}:
                return await self.pods.serve(request, target.key, target.subresource)
            asking = Asking(
                verb, request.path, query, request.content_type, target, body, request.headers.get("Accept", "")
            )
            answer = self.act(asking, fault)
            if isinstance(fault, Pad) and verb == "list":
                answer["items"] = [padded(obj, fault.size) for obj in answer["items"]]
        except ApiError as error:
            return _failure(error)
        self.watching.wake()
        if isinstance(fault, Drop):
            return _drop(request)
        code = 201 if verb == "create" else 200
        return web.Response(body=msgspec.json.encode(answer), status=code, content_type="application/json")

    def act(self, asking: Asking, fault: Fault | None) -> Tree:
        """Do what is asked and return the answer; raises ApiError. Servers with views of their own add them here."""
        stale = fault.revision if isinstance(fault, Stale) else None
        return act(self.storage, asking, version=self.version, stale=stale)

    def _let_in(self, request: web.Request) -> None:
        if self.tokens is not None:
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if token not in self.tokens:
                raise UnauthorizedError("Unauthorized")

    def _take_fault(self, verb: Verb, target: Target | None, query: dict[str, str]) -> Fault | None:
        plural = target.collection.plural if target is not None else None
        for fault in self.faults:
            meets = fault.verb in {None, verb} and fault.plural in {None, plural}
            if isinstance(fault, Refuse) and fault.continued:
                meets = meets and "continue" in query
            if meets:
                if fault.times is not None:
                    fault.times -= 1
                    if fault.times == 0:
                        self.faults.remove(fault)
                return fault
        return None


def _drop(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _failure(error: ApiError) -> web.Response:
    headers = {} if error.retry_after is None else {"Retry-After": f"{error.retry_after:.0f}"}
    body = msgspec.json.encode(status_of(error))
    return web.Response(body=body, status=error.code, headers=headers, content_type="application/json")
