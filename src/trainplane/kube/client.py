"""The API server's verbs, typed: what every other part of this room, and the SDK, speaks through.

Objects go in as trees, Structs or encoded bytes and come out as whatever `type_` names: a Struct, `dict` (the default)
or `bytes` for the untouched text. A call on a namespaced resource without a namespace reads all namespaces if it lists
or watches, and uses the configured one if it addresses an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.kube.codec import Lines, ListOf, Page, WatchEvent, decode, decode_event, decode_page, encode, key_of
from trainplane.kube.errors import GoneError, StreamError
from trainplane.kube.query import delete_options, selectors, with_query, write_query
from trainplane.kube.resource import PODS
from trainplane.kube.transport import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from typing import Self

    from typing_extensions import TypeVar

    from trainplane.kube.clock import Clock
    from trainplane.kube.config import Config
    from trainplane.kube.limiter import LimiterSettings
    from trainplane.kube.podstreams import ExecResult
    from trainplane.kube.query import Propagation, Selector
    from trainplane.kube.resource import Resource
    from trainplane.kube.transport import Permit, Response, TransportSettings


Tree = dict[str, Any]
"""A JSON object as plain Python."""

if TYPE_CHECKING:
    T = TypeVar("T", default=Tree)
else:
    from typing import TypeVar

    T = TypeVar("T")

TREE: Any = dict

FIELD_MANAGER = "trainplane"
"""Who a client is to server-side apply unless it, or a call, says otherwise."""

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

PAGE_LIMIT = 500
"""Objects of a page: the server's own clients' choice, some MB of TrainJobs, decoded within milliseconds."""

WATCH_SECONDS = 300
"""Seconds after which the server ends a watch, so that watches spread over its replicas again after one restarted."""

WATCH_GRACE_SECONDS = 30
"""Seconds past its promised end after which a watch counts as cut."""


class Client:
    """A connection to one cluster. Use within one event loop, `async with`; code without one has `loopthread`."""

    def __init__(
        self, transport: Transport, *, permit: Permit | None = None, field_manager: str = FIELD_MANAGER
    ) -> None:
        self.transport = transport
        self._permit = permit
        self._manager = field_manager

    @classmethod
    def connect(
        cls, config: Config | None = None, *, settings: TransportSettings | None = None, clock: Clock | None = None
    ) -> Self:
        """Return a client of `config`, or of the cluster that kubectl would use here. Nothing is sent yet."""
        if config is None:
            from trainplane.kube.loading import load_config  # noqa: PLC0415 only who does not bring a config pays

            config = load_config(clock=clock)
        return cls(Transport(config, settings=settings, clock=clock))

    def apart(self, limiter: LimiterSettings | None = None, *, streams: int | None = None) -> Client:
        """Return a client of the same cluster whose requests never wait behind this one's; close it on its own."""
        return Client(self.transport.apart(limiter, streams=streams), field_manager=self._manager)

    def permitted(self, permit: Permit) -> Client:
        """Return a client over the same connections that calls `permit` before each write goes out, repeats included.

        `permit` raises to keep a write back: a leader that lost its Lease while the server asked it to come back later
        must not come back.
        """
        return Client(self.transport, permit=permit, field_manager=self._manager)

    @property
    def namespace(self) -> str:
        """The namespace of calls that address an object and name none."""
        return self.transport.config.namespace

    async def close(self) -> None:
        """Close every connection."""
        await self.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        type_: type[T] = TREE,
    ) -> T:
        """Return an object; raises NotFoundError."""
        path = self._object_path(resource, name, namespace, subresource)
        return decode((await self.transport.request("GET", path)).body, type_)

    async def list_pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int = PAGE_LIMIT,
        resource_version: str | None = None,
        accept: str | None = None,
    ) -> AsyncGenerator[Page, None]:
        """Iterate over the pages of a list, all of one resourceVersion.

        `limit=0` asks for everything in one page; `accept`, for another form than whole objects. Raises GoneError if
        the list outlives the server's memory between two pages: the pages so far are then of no use, list again.
        """
        base = resource.path(namespace)
        query = selectors(labels, fields)
        if limit:
            query["limit"] = str(limit)
        first = {"resourceVersion": resource_version} if resource_version is not None else {}
        seconds = self.transport.settings.list_seconds
        following = query | first
        while True:
            path = with_query(base, following)
            response = await self.transport.request("GET", path, timeout_seconds=seconds, accept=accept)
            page = decode_page(response.body)
            yield page
            if not page.next:
                return
            following = query | {"continue": page.next}

    async def list_all(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int = PAGE_LIMIT,
        type_: type[T] = TREE,
    ) -> list[T]:
        """Return all objects, fetched in pages, decoded in one pass.

        If the list outlives the server's memory between two pages, it is fetched again whole.
        """
        try:
            return await self._list(resource, namespace, selectors(labels, fields), limit, type_)
        except GoneError:
            return await self._list(resource, namespace, selectors(labels, fields), 0, type_)

    async def _list(
        self, resource: Resource, namespace: str | None, query: dict[str, str], limit: int, type_: type[T]
    ) -> list[T]:
        base = resource.path(namespace)
        if limit:
            query["limit"] = str(limit)
        seconds = self.transport.settings.list_seconds
        list_type: type[ListOf[T]] = ListOf[type_]  # type: ignore[valid-type] # a type known only when running
        items: list[T] = []
        while True:
            response = await self.transport.request("GET", with_query(base, query), timeout_seconds=seconds)
            page = decode(response.body, list_type)
            items += page.items or []
            if not page.metadata.continue_:
                return items
            query["continue"] = page.metadata.continue_

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        initial_events: bool = False,
        labels: Selector | None = None,
        fields: Selector | None = None,
        timeout_seconds: int = WATCH_SECONDS,
        accept: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Iterate over changes after `resource_version`, with bookmarks, until the server ends the watch.

        `initial_events` streams the present state first, as ADDED events ended by a BOOKMARK that carries the
        annotation `k8s.io/initial-events-end`. A clean end after `timeout_seconds` just ends the iteration; a cut
        raises StreamError, an ERROR event the typed ApiError (GoneError: list again). Leave early with
        `contextlib.aclosing`, which closes the connection at once.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_seconds)}
        query |= selectors(labels, fields)
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        path = with_query(resource.path(namespace), query)
        lines = Lines()
        most = timeout_seconds + WATCH_GRACE_SECONDS
        async with self.transport.stream(path, total_seconds=most, accept=accept) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    if line:
                        yield decode_event(line)
        if rest := lines.rest():
            raise StreamError(
                f"watch of {resource.plural}: the stream was cut in an event, after {len(rest)} bytes of it"
            )

    async def create(
        self,
        resource: Resource,
        obj: Any,
        namespace: str | None = None,
        *,
        dry_run: bool = False,
        field_manager: str | None = None,
        type_: type[T] = TREE,
    ) -> T:
        """Create an object in `namespace`, or in the one its metadata names; raises AlreadyExistsError."""
        if resource.namespaced and namespace is None:
            namespace = key_of(obj).namespace or self.namespace
        path = with_query(resource.path(namespace), write_query(field_manager or self._manager, dry_run=dry_run))
        return await self._write("POST", path, obj, "application/json", type_, idempotent=dry_run)

    async def replace(
        self,
        resource: Resource,
        obj: Any,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        type_: type[T] = TREE,
    ) -> T:
        """Put an object in the place of what is there; raises ConflictError if its resourceVersion is not the newest.

        For optimistic locking (leases). Anything that may carry fields we do not know is applied, not replaced.
        """
        identity = key_of(obj)
        path = self._object_path(resource, identity.name, namespace or identity.namespace, subresource)
        path = with_query(path, write_query(field_manager or self._manager, dry_run=dry_run))
        return await self._write("PUT", path, obj, "application/json", type_, idempotent=True)

    async def apply(
        self,
        resource: Resource,
        obj: Any,
        *,
        field_manager: str | None = None,
        force: bool = True,
        subresource: str | None = None,
        dry_run: bool = False,
        type_: type[T] = TREE,
    ) -> T:
        """Server-side apply: make the object hold these fields, and drop what we applied before and leave out now.

        `obj` names itself in its metadata. With `force=False`, raises ConflictError where another manager holds a
        field with another value.
        """
        identity = key_of(obj)
        path = self._object_path(resource, identity.name, identity.namespace, subresource)
        query = write_query(field_manager or self._manager, dry_run=dry_run) | {"force": "true" if force else "false"}
        return await self._write("PATCH", with_query(path, query), obj, APPLY_PATCH, type_, idempotent=True)

    async def apply_status(
        self,
        resource: Resource,
        obj: Any,
        *,
        field_manager: str | None = None,
        force: bool = True,
        dry_run: bool = False,
        type_: type[T] = TREE,
    ) -> T:
        """Server-side apply to the status subresource."""
        return await self.apply(
            resource, obj, field_manager=field_manager, force=force, subresource="status", dry_run=dry_run, type_=type_
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str | None = None,
        *,
        content_type: str = MERGE_PATCH,
        subresource: str | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        type_: type[T] = TREE,
    ) -> T:
        """Patch an object. A JSON patch is sent once only; the other kinds may be repeated without harm."""
        path = self._object_path(resource, name, namespace, subresource)
        path = with_query(path, write_query(field_manager or self._manager, dry_run=dry_run))
        idempotent = dry_run or content_type != JSON_PATCH
        return await self._write("PATCH", path, patch, content_type, type_, idempotent=idempotent)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
        preconditions_uid: str | None = None,
        preconditions_version: str | None = None,
        grace_seconds: int | None = None,
        type_: type[T] = TREE,
    ) -> T:
        """Delete an object; returns it, or a Status, as the server does. Raises NotFoundError.

        Raises ConflictError rather than delete a namesake that came after (`preconditions_uid`), or an object that
        changed since it was read (`preconditions_version`).
        """
        options = delete_options(
            propagation, grace_seconds=grace_seconds, uid=preconditions_uid, version=preconditions_version
        )
        path = self._object_path(resource, name, namespace)
        return await self._write("DELETE", path, options, "application/json", type_, idempotent=True)

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete all objects that the selectors choose, in one namespace, or in none if cluster-scoped."""
        if resource.namespaced and namespace is None:
            namespace = self.namespace
        path = with_query(resource.path(namespace), selectors(labels, fields))
        await self._write("DELETE", path, delete_options(propagation), "application/json", bytes, idempotent=True)

    async def logs(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        since_seconds: int | None = None,
        timestamps: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Iterate over a container's log lines, without their newlines; with `follow`, until the container ends."""
        query = {"follow": "true"} if follow else {}
        if previous:
            query["previous"] = "true"
        if timestamps:
            query["timestamps"] = "true"
        numbers = {"sinceSeconds": since_seconds, "tailLines": tail_lines}
        query |= {name: str(value) for name, value in numbers.items() if value is not None}
        if container is not None:
            query["container"] = container
        lines = Lines()
        async with self.transport.stream(with_query(PODS.path(namespace, pod, "log"), query), accept="*/*") as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    yield line
        if rest := lines.rest():
            yield rest

    async def exec(
        self,
        namespace: str,
        pod: str,
        command: Sequence[str],
        *,
        container: str | None = None,
        stdin: bytes | None = None,
        timeout_seconds: float | None = None,
    ) -> ExecResult:
        """Run a command in a container, to its end. A code other than 0 is a result, not an error."""
        from trainplane.kube.podstreams import run_command  # noqa: PLC0415 few callers ever exec

        return await run_command(
            self.transport, namespace, pod, command, container=container, stdin=stdin, timeout_seconds=timeout_seconds
        )

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str | None = None,
    ) -> Response:
        """Send anything anywhere, with this client's credentials and retries; raises as every call does."""
        content = None if body is None else encode(body)
        return await self.transport.request(
            method,
            with_query(path, dict(query or {})),
            body=content,
            content_type=None if content is None else content_type,
            accept=accept,
        )

    async def version(self) -> Tree:
        """Return the server's version, as `/version` gives it."""
        return decode((await self.transport.request("GET", "/version")).body, Tree)

    async def _write(
        self, method: str, path: str, obj: Any, content_type: str, type_: type[T], *, idempotent: bool
    ) -> T:
        response = await self.transport.request(
            method,
            path,
            body=encode(obj),
            content_type=content_type,
            idempotent=idempotent,
            permit=self._permit,
        )
        return decode(response.body, type_)

    def _object_path(self, resource: Resource, name: str, namespace: str | None, subresource: str | None = None) -> str:
        if resource.namespaced and not namespace:
            namespace = self.namespace
        return resource.path(namespace, name, subresource)
