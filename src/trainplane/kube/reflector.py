"""Keeps a store equal to the server, for as long as it runs.

List, then watch from where the list ended. The list itself is a watch (`sendInitialEvents`): the server streams what
it has, marks the end with a bookmark and goes on with what changes. Where a server refuses that, a list in pages comes
first. Whatever happens to a stream, it resumes a few events before the last one seen; only if the server has forgotten
those (410) is everything listed again, and compared, so that deletes we missed are delivered as deletes.

Trust is limited. Versions only go forward, object by object (`store`) and list by list (`relist`): a list older than
what was seen already is refused and taken again. A server that insists (`stale_lists` times in a row) has been restored
from a backup, and is believed; so is a list that is new and has objects which are old, after which another one compares
what has the same version: versions were given twice. Such a server takes a watch from its future without a word and is
then silent, or, once its versions have caught up, sends events of another history. So a stream that did not end at its
appointed time is resumed only after a list of one object has shown that the server is not behind what was seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NoReturn, Protocol

import msgspec

from trainplane.kube.backoff import Backoff
from trainplane.kube.clock import SystemClock
from trainplane.kube.codec import MALFORMED, decoder
from trainplane.kube.errors import (
    ApiError,
    BadRequestError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    StreamError,
    is_from_the_future,
)
from trainplane.kube.observer import Unobserved
from trainplane.kube.pace import Pace
from trainplane.kube.relist import Relist

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from trainplane.kube.clock import Clock
    from trainplane.kube.codec import Page, WatchEvent
    from trainplane.kube.observer import Observer
    from trainplane.kube.resource import Resource
    from trainplane.kube.store import Change, Store

    Handler = Callable[[Change], None]
    Selector = str | Mapping[str, str]

logger = logging.getLogger(__name__)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

OVERLAP = 16
"""Events that a resumed watch asks for again: repeats cost nothing, and a cut amid events out of order loses none."""

CATCH_UP_SECONDS = 2.0
"""Seconds in which events of a resumed watch do not show that the store is up to date: they repeat, or are late."""

RETRY_AFTER_MOST = 60.0
"""Seconds of a Retry-After that are obeyed: whoever asks for a day would have a store that is a day old."""

ABSENT_SECONDS = 60.0
"""Seconds between looks for a resource that is not served, or not ours to read, and that nobody waits for."""

SHORTEST_WATCH = 1.0
"""Seconds below which the end of a watch is a failure to wait after, however cleanly the server ended it."""


class Cluster(Protocol):
    """The two calls a reflector makes; `trainplane.kube.client.Client` has them."""

    def list_pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        labels: Selector | None = None,
        fields: Selector | None = None,
        limit: int = ...,
        resource_version: str | None = None,
    ) -> AsyncIterator[Page]:
        """Return the pages of a list."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str | None = None,
        initial_events: bool = False,
        labels: Selector | None = None,
        fields: Selector | None = None,
        timeout_seconds: int = ...,
    ) -> AsyncIterator[WatchEvent]:
        """Return the events of a watch."""
        ...


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """How a reflector lists, watches and waits."""

    page_size: int = 500
    """Objects per page where the server does not stream lists: about 2 MB of TrainJobs, 5 ms to decode."""

    watch_seconds: int = 300
    """Seconds after which the server ends a watch, drawn from here to twice this, so that load spreads over servers."""

    silence_seconds: float = 150.0
    """Seconds without any event after which a stream counts as dead. Servers send bookmarks about each minute."""

    stale_lists: int = 5
    """Lists in a row older than what was seen, after which the server is believed: about half a minute of backoff."""

    backoff: Backoff = field(default_factory=lambda: Backoff(base=0.8, cap=30.0))
    """Waits between failures: gentle on a server that restarts with everyone waiting for it."""


class _BookmarkMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct, gc=False):
    metadata: _BookmarkMeta


class Reflector:
    """Mirrors one resource, or the part of it that `namespace` and selectors choose, into a store.

    `handlers` are called for each change, in order, after the store has it; they must not block. One that raises is
    logged and misses that change; the others and the store do not.

    `needed=False` is for a resource that may never be there, or that an admin may keep from us: it is looked for each
    minute, and said once to be absent.
    """

    def __init__(
        self,
        client: Cluster,
        resource: Resource,
        store: Store,
        handlers: Iterable[Handler] = (),
        clock: Clock | None = None,
        *,
        namespace: str | None = None,
        labels: Selector | None = None,
        fields: Selector | None = None,
        settings: ReflectorSettings | None = None,
        observer: Observer | None = None,
        random: Random | None = None,
        needed: bool = True,
    ) -> None:
        self.resource = resource
        self.needed = needed
        self.store = store
        self.synced = asyncio.Event()
        """Set once a whole list is in the store, and then for ever."""
        self.known = asyncio.Event()
        """Set once it is known what there is: a whole list, or that the server does not serve the resource (yet), or,
        where it is not needed, that it does not serve it to us."""
        self._client = client
        self._handlers = list(handlers)
        self._clock = clock or SystemClock()
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._settings = settings or ReflectorSettings()
        self._observer = observer or Unobserved()
        self._random = random or Random()  # noqa: S311 jitter is no secret
        self._streams_lists = True
        self._may_resume = False
        self._was_cut = False
        self._failures = 0
        self._stale_lists = 0
        self._in_doubt = False
        self._events = 0
        self._list_began = 0.0
        self._pace = Pace()
        self._recent: deque[int] = deque(maxlen=OVERLAP)

    @property
    def settled(self) -> asyncio.Event:
        """The event that others wait for before they rely on the store."""
        return self.synced if self.needed else self.known

    def add_handler(self, handler: Handler) -> None:
        """Deliver changes to one more handler; those of the past are not repeated, so add it before `run`."""
        self._handlers.append(handler)

    async def run(self) -> NoReturn:
        """Mirror until cancelled. Errors of the cluster are waited out; anything else raised is a bug and ends it."""
        while True:
            wait = 0.0
            try:
                await self._list_and_watch()
            except KubeError as error:
                wait = self._recover(error)
            if wait > 0:
                await self._clock.sleep(wait)

    async def _list_and_watch(self) -> None:
        if not self._may_resume:
            self._list_began = self._clock.monotonic()
            if not self._streams_lists:
                await self._list_in_pages()
        elif self._was_cut:
            await self._check_history()
        self._was_cut = True
        await self._watch()

    async def _check_history(self) -> None:
        """Ask how far the server has come; raises StreamError, and lists next, if that is behind what was seen."""
        pages = self._client.list_pages(
            self.resource, self._namespace, labels=self._labels, fields=self._fields, limit=1
        )
        async with _closing(pages):
            page = await anext(aiter(pages))
        version = _number(page.resource_version)
        if version < self.store.observed:
            self._may_resume = False
            self._failures = 0  # it answers: no more long waits meant for one that is away
            raise StreamError(
                f"the server is at resourceVersion {version} of {self.resource.plural}, behind {self.store.observed}, "
                "which was seen already: was it restored from a backup?"
            )

    def _recover(self, error: KubeError) -> float:
        """Decide how to go on after an error; returns the seconds to wait first."""
        refused = isinstance(error, (BadRequestError, InvalidError))
        if refused and self._streams_lists and not self._may_resume:
            logger.info("server does not stream lists, listing in pages", extra={"resource": self.resource.plural})
            self._streams_lists = False
            return 0.0
        if not self.needed and isinstance(error, NotFoundError | ForbiddenError):
            return self._do_without(error)
        self._observer.stream_failed(self.resource, error)
        if isinstance(error, NotFoundError):
            self.known.set()
        if self._may_resume and isinstance(error, GoneError):
            self._failures = 0  # a server that answers is back: no more long waits meant for one that is away
        if refused or isinstance(error, GoneError) or is_from_the_future(error):
            self._may_resume = False
        self._failures += 1
        wait = self._settings.backoff.delay(self._failures, self._random)
        if isinstance(error, ApiError) and error.retry_after is not None:
            wait = max(wait, min(error.retry_after, RETRY_AFTER_MOST))
        log = logger.warning if self._failures > 1 else logger.info
        log(
            "watch failed",
            extra={
                "resource": self.resource.plural,
                "error": str(error),
                "failures": self._failures,
                "relist": not self._may_resume,
                "wait_seconds": round(wait, 3),
            },
        )
        return wait

    def _do_without(self, error: KubeError) -> float:
        """Take note that a resource which is not needed cannot be had; returns when to look for it again."""
        self.known.set()
        if isinstance(error, ForbiddenError):
            self._observer.stream_failed(self.resource, error)  # a right is missing, which somebody should see
        self._failures += 1
        log = logger.info if self._failures == 1 else logger.debug
        log("not mirrored: looked for each minute", extra={"resource": self.resource.plural, "error": str(error)})
        return ABSENT_SECONDS * self._random.uniform(0.8, 1.0)

    async def _list_in_pages(self) -> None:
        relist = self._begin_list()
        listed_at: int | None = None
        pages = self._client.list_pages(
            self.resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            limit=self._settings.page_size,
        )
        async with _closing(pages):
            async for page in pages:
                if listed_at is None:
                    listed_at = _number(page.resource_version)
                for raw in page.items:
                    self._deliver(relist.add(self.store.read(raw)))
                    if self._pace.is_due():
                        await self._pace.rest()
        if listed_at is None:
            raise StreamError(f"a list of {self.resource.plural} had no page at all")
        await self._end_list(relist, listed_at)

    async def _watch(self) -> None:
        """Follow a stream to its end; raises StreamError if it falls silent."""
        consumer = asyncio.create_task(self._consume(), name=f"watch-{self.resource.plural}")
        watchdog = asyncio.create_task(self._wait_for_silence(), name=f"watchdog-{self.resource.plural}")
        try:
            await asyncio.wait((consumer, watchdog), return_when=asyncio.FIRST_COMPLETED)
            if consumer.done():
                consumer.result()
                return
        finally:
            for task in (consumer, watchdog):
                task.cancel()
            await asyncio.gather(consumer, watchdog, return_exceptions=True)
        if not self._may_resume:
            self._streams_lists = False  # an old server ignores the request for initial events and never ends them
        raise StreamError(f"the watch of {self.resource.plural} was silent for {self._settings.silence_seconds:g} s")

    async def _wait_for_silence(self) -> None:
        heard = -1
        while heard != self._events:
            heard = self._events
            await self._clock.sleep(self._settings.silence_seconds)

    async def _consume(self) -> None:
        listing = None if self._may_resume else self._begin_list()
        began = self._clock.monotonic()
        seconds = self._random.randint(self._settings.watch_seconds, 2 * self._settings.watch_seconds)
        caught_up_at = began + (CATCH_UP_SECONDS if listing is None else 0.0)
        stream = self._client.watch(
            self.resource,
            self._namespace,
            resource_version=str(self._resume_at()) if listing is None else None,
            initial_events=listing is not None,
            labels=self._labels,
            fields=self._fields,
            timeout_seconds=seconds,
        )
        async with _closing(stream):
            async for event in stream:
                self._events += 1
                if listing is None and self._clock.monotonic() >= caught_up_at:
                    self.store.heard_at = self._clock.monotonic()
                if event.type == "BOOKMARK":
                    listing = await self._pass_bookmark(event.object, listing)
                elif listing is None:
                    self._apply(event)
                else:
                    self._apply_to(listing, event)
                if self._pace.is_due():
                    await self._pace.rest()
        if listing is not None:
            raise StreamError(f"the streamed list of {self.resource.plural} ended before its last bookmark")
        lasted = self._clock.monotonic() - began
        if lasted < SHORTEST_WATCH:
            raise StreamError(f"the watch of {self.resource.plural} ended as soon as it began")
        self._was_cut = lasted < seconds - 1  # an API server that goes away ends its watches cleanly, but early

    def _apply(self, event: WatchEvent) -> None:
        header = self.store.read(event.object)
        self._deliver(self.store.delete(header) if event.type == "DELETED" else self.store.put(header))
        self._recent.append(self.store.observed)
        if header.resource_version > self.store.observed:
            self.store.observed = header.resource_version
            self._failures = 0

    def _apply_to(self, listing: Relist, event: WatchEvent) -> None:
        header = self.store.read(event.object)
        self._deliver(listing.delete(header) if event.type == "DELETED" else listing.add(header))

    def _resume_at(self) -> int:
        return self._recent[0] if self._recent else self.store.observed

    async def _pass_bookmark(self, raw: msgspec.Raw, listing: Relist | None) -> Relist | None:
        """Take note of how far the stream has come; returns the list if it still goes on."""
        try:
            meta = decoder(_Bookmark).decode(raw).metadata
        except MALFORMED as error:
            raise StreamError(f"a bookmark without resourceVersion: {error}") from error
        resource_version = _number(meta.resource_version)
        if listing is None:
            if resource_version >= self.store.observed:
                self.store.observed = resource_version
                self._recent.clear()
                self._failures = 0
            return None
        if (meta.annotations or {}).get(INITIAL_EVENTS_END) != "true":
            return listing
        await self._end_list(listing, resource_version)
        return None

    def _begin_list(self) -> Relist:
        believed = self._stale_lists >= self._settings.stale_lists
        return Relist(self.store, initial=not self.synced.is_set(), force=believed, compare=self._in_doubt)

    async def _end_list(self, listing: Relist, resource_version: int) -> None:
        if listing.is_stale(resource_version):
            self._stale_lists += 1
            raise StreamError(
                f"a list of {self.resource.plural} at resourceVersion {resource_version} is older than "
                f"{self.store.observed}, which was seen already"
            )
        for change in listing.finish(resource_version):
            self._deliver((change,))
            if self._pace.is_due():
                await self._pace.rest()
        self._stale_lists = 0
        self._recent.clear()
        self._in_doubt, self._may_resume = listing.in_doubt, not listing.in_doubt
        seconds = self._clock.monotonic() - self._list_began
        self._observer.listed(self.resource, objects=len(self.store), seconds=seconds)
        self.synced.set()
        self.known.set()
        if self._in_doubt:
            raise StreamError(
                f"a list of {self.resource.plural} at resourceVersion {resource_version} has objects from before they "
                "were last seen: the server was restored from a backup, and is listed again to compare contents"
            )

    def _deliver(self, changes: Iterable[Change]) -> None:
        for change in changes:
            for handler in self._handlers:
                try:
                    handler(change)
                except Exception as error:
                    self._observer.handler_failed(self.resource, error)
                    logger.exception(
                        "handler failed",
                        extra={"resource": self.resource.plural, "key": str(change.key), "change": change.type},
                    )


@asynccontextmanager
async def _closing(stream: AsyncIterator[object]) -> AsyncIterator[None]:
    """Close a generator, and so its connection, when done with it and not at some collection."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _number(resource_version: str) -> int:
    try:
        return int(resource_version)
    except ValueError:
        raise StreamError(f"resourceVersion {resource_version!r} is no number") from None
