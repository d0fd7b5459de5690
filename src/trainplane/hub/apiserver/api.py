"""The aggregated API: `hub.trainplane.dev/v1alpha1`, what is asked and what is answered.

    /namespaces/NS/trainjobs                a list; a table for kubectl
    /namespaces/NS/trainjobs/NAME           where it is and how it does
    /namespaces/NS/trainjobs/NAME/pods      its pods, on whichever cluster, also when they are gone
    /namespaces/NS/trainjobs/NAME/events    the hub's and the worker's, in the order of time
    /namespaces/NS/trainjobs/NAME/log       what its pods print and printed (`logquery`)
    /namespaces/NS/trainjobs/NAME/queue     why it waits (`pending`)

and the same for `pytorchjobs` and the other kinds of `kubeflow.org` that an admin enables.

`log` is a name that the API server knows as long-running, which is why a followed log is not cut after a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from aiohttp import web

from trainplane.hub.apiserver import logquery, logs, view
from trainplane.hub.apiserver.delegated_auth import Access
from trainplane.hub.apiserver.discovery import ROOT, SUBRESOURCES, documents
from trainplane.hub.apiserver.following import Follow
from trainplane.hub.apiserver.readers import Readers
from trainplane.hub.apiserver.status import warning
from trainplane.hub.errors import NoLogError, NoSuchJobError, WorkerUnreachableError
from trainplane.hub.kinds import TRAIN_JOB, is_over, kind_of
from trainplane.hub.logarchive.collector import HUB
from trainplane.hub.logarchive.owners import look
from trainplane.hub.pending import explain as queued
from trainplane.hub.workers import WORKER_SECONDS, answering
from trainplane.kube.errors import KubeError, MethodNotAllowedError, NotFoundError, UnavailableError
from trainplane.kube.listener import path_of
from trainplane.resources import EVENTS, NAMESPACES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from trainplane.api.tree import Tree
    from trainplane.hub.apiserver.delegated_auth import Authorizer
    from trainplane.hub.apiserver.logquery import LogQuery, Run
    from trainplane.hub.kinds import JobKind
    from trainplane.hub.logarchive.archive import Archive
    from trainplane.hub.logarchive.collector import LogCollector
    from trainplane.hub.logarchive.jobs import Jobs
    from trainplane.hub.logarchive.keptjob import KeptJob
    from trainplane.hub.logarchive.sink import JournalSink
    from trainplane.hub.workers import Workers
    from trainplane.kube.access import User
    from trainplane.kube.client import Client
    from trainplane.kube.clock import Clock
    from trainplane.kube.logfollower import Follower

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 3.0
"""How long a request for a log waits for the lines that were printed before it."""
GONE_SECONDS: Final = 2.0
"""Seconds between looks whether the reader of a followed log is still there."""


class Target(NamedTuple):
    """What a path addresses; parts that it does not have are empty."""

    namespace: str = ""
    name: str = ""
    subresource: str = ""
    kind: JobKind = TRAIN_JOB

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}"


def target_of(path: str, kinds: Iterable[JobKind] = (TRAIN_JOB,)) -> Target:
    """Return what a path addresses; raises NotFoundError for one that we do not have, as of a kind that is not on."""
    served = {kind.plural: kind for kind in kinds}
    parts = path.removeprefix(ROOT).strip("/").split("/")
    match parts:
        case [plural] if plural in served:
            return Target(kind=served[plural])
        case ["namespaces", namespace, plural] if namespace and plural in served:
            return Target(namespace, kind=served[plural])
        case ["namespaces", namespace, plural, name, *rest] if namespace and plural in served and name:
            part = "".join(rest)
            if not rest or (len(rest) == 1 and part in SUBRESOURCES):
                return Target(namespace, name, part, served[plural])
    raise NotFoundError("the server could not find the requested resource")


@dataclass
class Api:
    """Answers requests that are authenticated."""

    hub: Client
    workers: Workers
    jobs: Jobs
    collector: LogCollector
    archive: Archive
    authorizer: Authorizer
    clock: Clock
    readers: Readers = field(default_factory=Readers)
    behind: Callable[[], str | None] = lambda: None
    """Says what is not known yet, shortly after a start: then requests are answered 503."""
    worker_seconds: float = WORKER_SECONDS
    """Seconds that each worker may take to be read for an answer; the answer says which did not make it."""

    def __post_init__(self) -> None:
        self._documents = documents(self.jobs.kinds)

    async def answer(self, request: web.BaseRequest, user: User) -> web.StreamResponse:
        """Answer a request of a user. Raises KubeError and HubError, which are the answer then."""
        path = path_of(request)
        document = self._documents.get(path.rstrip("/") or "/")
        if document is not None:
            return _json(document)
        if not path.startswith(f"{ROOT}/"):
            raise NotFoundError("the server could not find the requested resource")
        target = target_of(path, self.jobs.kinds)
        verb = "get" if target.name else "list"
        if request.method != "GET" or request.query.get("watch") in {"true", "1"}:
            raise MethodNotAllowedError(f"{request.method} is not served here: this view is read only, and not watched")
        access = Access(verb, target.namespace, target.name, target.subresource, target.kind.plural)
        await self.authorizer.check(user, access)
        if (missing := self.behind()) is not None:
            raise UnavailableError(f"the hub server has just started ({missing}): ask again", code=503, retry_after=2)
        if not target.name:
            return await self._list(request, target)
        if target.subresource == "log":
            with self.readers.admit(user.name, target.namespace):
                return await self._log(request, target)
        answers = {"": self._get, "pods": self._pods, "events": self._events, "queue": self._queue}
        return await answers[target.subresource](request, await self._job(target))

    async def _job(self, target: Target) -> Tree:
        job = await self._find(target)
        if job is None:
            raise NoSuchJobError(target.namespace, target.name, target.kind.name)
        return job

    async def _find(self, target: Target) -> Tree | None:
        try:
            return await self.hub.get(target.kind.resource, target.name, target.namespace)
        except NotFoundError:
            return None

    async def _list(self, request: web.BaseRequest, target: Target) -> web.Response:
        found = await self.hub.list_all(
            target.kind.resource,
            target.namespace or None,
            labels=request.query.get("labelSelector"),
            fields=request.query.get("fieldSelector"),
        )
        return self._show(request, [self._summary(job) for job in found], list_of=target.kind)

    async def _get(self, request: web.BaseRequest, job: Tree) -> web.Response:
        summary = self._summary(job)
        summary["status"] |= self.collector.hearing.told(job).tree()
        return self._show(request, [summary])

    def _show(self, request: web.BaseRequest, items: list[Tree], *, list_of: JobKind | None = None) -> web.Response:
        version = str(max((int(item["metadata"].get("resourceVersion") or 0) for item in items), default=0))
        if "as=Table" in request.headers.get("Accept", ""):
            return _json(view.table(items, version, self.clock.now()))
        return _json(items[0] if list_of is None else view.listing(list_of.name, items, version))

    def _summary(self, job: Tree) -> Tree:
        """Return a job in brief.

        What was last seen of pods counts on the worker that has the job, and on others while they are seen: a worker
        that is lost, or is back and not read yet, may have ended them long ago, and another has the job by now.
        """
        placement = self.jobs.place(job)
        kept = self.archive.job(placement.uid)
        where = placement.cluster or HUB
        pods = [one for one in self.collector.pods(job, None) if one[0] == where or self._is_current(one[0])]
        problem = self._problem(placement.cluster)
        return view.summary(job, placement, pods, kept_bytes=kept.size if kept else 0, problem=problem)

    def _is_current(self, cluster: str) -> bool:
        mirror = self.collector.mirrors.get(cluster)
        return mirror is not None and mirror.is_current

    def _problem(self, cluster: str | None) -> str | None:
        mirror = self.collector.mirrors.get(cluster or HUB)
        if mirror is None:
            return f"worker {cluster} is not known to the hub any more" if cluster else None
        where = f"worker {cluster}" if cluster else "the hub"
        return None if mirror.problem is None else f"{where} {mirror.problem}"

    async def _pods(self, _: web.BaseRequest, job: Tree) -> web.Response:
        kept = self.archive.job(job["metadata"]["uid"])
        problem = self._problem(self.jobs.place(job).cluster)
        return _json(view.pod_list(self.collector.pods(job, kept)), problem)

    async def _events(self, _: web.BaseRequest, job: Tree) -> web.Response:
        placement = self.jobs.place(job)
        pods = self.collector.pods(job, self.archive.job(placement.uid))
        about: dict[str, Any] = {
            "workload": placement.workload,
            "pods": frozenset(pod["metadata"]["name"] for _, pod in pods),
        }
        clusters = dict.fromkeys([HUB, *(cluster for cluster, _ in pods), placement.cluster or HUB])
        listed = await asyncio.gather(*(self._events_of(cluster, placement.namespace) for cluster in clusters))
        found = [
            (cluster, event)
            for cluster, (events, _) in zip(clusters, listed, strict=True)
            for event in events
            if view.concerns(event, job, **about)
        ]
        return _json(view.event_list(found), *(problem for _, problem in listed))

    async def _events_of(self, cluster: str, namespace: str) -> tuple[list[Tree], str | None]:
        """Return the events of a namespace of a cluster, or why a worker's are missing."""
        if cluster == HUB:
            return await self.hub.list_all(EVENTS, namespace), None
        mirror = self.collector.mirrors.get(cluster)
        if mirror is None:
            return [], None
        try:
            async with answering(cluster, self.clock, self.worker_seconds):
                return await mirror.client.list_all(EVENTS, namespace), None
        except WorkerUnreachableError as error:
            mirror.is_doubted = True
            return [], f"events of worker {cluster} are missing: {error.cause}"
        except KubeError as error:
            return [], f"events of worker {cluster} are missing: {error}"

    async def _queue(self, _: web.BaseRequest, job: Tree) -> web.Response:
        metadata = job["metadata"]
        answer = await queued.answer(
            self.hub,
            metadata["namespace"],
            metadata["name"],
            self.workers,
            kind=kind_of(job),
            clock=self.clock,
            worker_seconds=self.worker_seconds,
        )
        return _json(answer.to_tree())

    async def _log(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = logquery.parse(request.query)
        job = await self._find(target)
        kept = await self._kept(target, job)
        if job is None and kept is None:
            raise NoSuchJobError(target.namespace, target.name, target.kind.name)
        now = int(self.clock.now().timestamp() * 1_000_000_000)
        if query.follow and not query.previous:
            chunks = _limited(self._follow(target, query, now), query.limit_bytes)
            return await self._send(request, self._warnings(job, kept), chunks)
        if kept is None:
            reason = self._problem(self.jobs.place(job).cluster) or self.jobs.place(job).reason if job else ""
            text = f"{target} has had no pod yet ({reason}); follow=true waits for it"
            raise NoLogError(text)
        await self._settle(kept)
        chunks = _limited(self.readers.each(logs.read(kept, query, now)), query.limit_bytes)
        return await self._send(request, self._warnings(job, kept), chunks)

    def _warnings(self, job: Tree | None, kept: KeptJob | None) -> list[str]:
        """Return what keeps lines of a job from coming now; they follow when it is over."""
        problem = self._problem(self.jobs.place(job).cluster) if job else None
        found = [problem] if problem else self.collector.problems(kept) if kept else []
        return [f"lines may be missing for now: {text}" for text in found[:3]]

    async def _kept(self, target: Target, job: Tree | None) -> KeptJob | None:
        """Return what is kept of a job, or of the last one of its name in this very namespace.

        A namespace that is deleted and made again may be another team's: what was in the former is not shown there.
        """
        if job is not None:
            return self.archive.job(job["metadata"]["uid"])
        namespace = await look(self.hub, NAMESPACES, target.namespace)
        if namespace is None:
            return None
        return self.archive.latest(target.namespace, target.name, namespace.uid, target.kind.name)

    async def _settle(self, kept: KeptJob) -> None:
        """Wait a little for followers that have just begun to read."""
        followers = [
            follower
            for uid, pod in kept.pods.items()
            for container in pod.containers
            if (follower := self.collector.follower(uid, container)) is not None
        ]
        waits = [asyncio.create_task(f.current.wait()) for f in followers if not f.current.is_set() and _runs(f)]
        if waits:
            await asyncio.wait(waits, timeout=SETTLE_SECONDS)
            for wait in waits:
                wait.cancel()

    async def _follow(self, target: Target, query: LogQuery, now: int) -> AsyncGenerator[bytes, None]:
        """Yield a followed log's text, from whenever there is some."""
        while True:
            news = self.archive.news.next
            # One that was made a moment ago is not in the mirror yet; one that is gone is only seen by asking.
            job = self.jobs.get(target.namespace, target.name, target.kind.name) or await self._find(target)
            kept = await self._kept(target, job)
            if kept is not None and kept is await self._kept(target, await self._find(target)):
                break  # asked, for a mirror may lag behind a namespace that was made again
            if job is None or is_over(job):
                return
            with contextlib.suppress(TimeoutError):
                async with self.clock.timeout(1.0):
                    await news.wait()
        follow = Follow(kept, query, self._is_followed, now, self.readers)
        async with contextlib.aclosing(follow.text()) as text:
            async for chunk in text:
                yield chunk

    def _is_followed(self, run: Run) -> bool:
        return self.collector.follower(run.pod.folder.name, run.container) is not None

    async def _send(
        self, request: web.BaseRequest, warnings: list[str], text: AsyncGenerator[bytes, None]
    ) -> web.StreamResponse:
        """Send text until it ends or its reader is gone, which a silent log would not notice by itself."""
        response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
        for each in warnings:
            response.headers.add("Warning", warning(each))
        await response.prepare(request)

        async def send() -> None:
            async with contextlib.aclosing(text) as chunks:
                async for chunk in chunks:
                    await response.write(chunk)
            await response.write_eof()

        sending = asyncio.create_task(send())
        try:
            while not sending.done() and request.transport is not None:
                await asyncio.wait((sending,), timeout=GONE_SECONDS)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        self._judge(request, sending)
        return response

    @staticmethod
    def _judge(request: web.BaseRequest, sending: asyncio.Task[None]) -> None:
        """Break the connection off where text did not come to its end: an answer that only stops would seem whole."""
        error = None if sending.cancelled() else sending.exception()
        if error is not None and not isinstance(error, ConnectionError):
            log.error("log was not sent to its end", extra={"path": path_of(request)}, exc_info=error)
        if error is not None and request.transport is not None:
            request.transport.abort()


async def _limited(chunks: AsyncGenerator[bytes, None], limit: int | None) -> AsyncGenerator[bytes, None]:
    """Iterate over text, and end after so many bytes of it."""
    async with contextlib.aclosing(chunks):
        left = sys.maxsize if limit is None else limit
        async for chunk in chunks:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return


def _runs(follower: Follower[JournalSink]) -> bool:
    status = follower.sink.pod.pod.status_of(follower.container)
    return status is not None and (status.state is None or status.state.waiting is None)


def _json(tree: Tree, *warnings: str | None) -> web.Response:
    response = web.Response(body=msgspec.json.encode(tree), content_type="application/json")
    for text in filter(None, warnings):
        response.headers.add("Warning", warning(text))
    return response
