"""The status server: pods report progress, and ask how training stands (`training`).

A request is answered with its own words or what it asks for, or with a Status that says what is wrong.

A TrainJob that is over keeps the progress that it ended with: later reports are refused with 409, and so are those of
one that is being deleted. Where the TrainJob is not run by this operator there is none to report to: 404.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from trainplane.api import names
from trainplane.kube.errors import DecodeError, ForbiddenError, KubeError
from trainplane.kube.listener import Listener, body_of, path_of
from trainplane.lifecycle.conditions import is_finished
from trainplane.operator.progress.refusal import RefusalError
from trainplane.operator.progress.report import BODY_LIMIT, job_of, read_report
from trainplane.operator.progress.training import AGAIN_SECONDS, read_wait
from trainplane.operator.stores import Meta

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from trainplane.kube.listener import ListenerSettings
    from trainplane.kube.resource import Key
    from trainplane.operator.progress.callers import Callers
    from trainplane.operator.progress.reports import Reports
    from trainplane.operator.progress.training import Trainings
    from trainplane.operator.stores import Stores

log = logging.getLogger(__name__)

HANDLER_SECONDS: Final = 9.0
"""Seconds for one request: just under the ten after which the reference gives an answer up."""

LATER: Final = 5.0
"""Seconds after which to report again, where that may help: as often as clients report anyway."""

_JSON: Final = {"Content-Type": "application/json"}


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    managed_by: str = ""


class _Job(msgspec.Struct, frozen=True):
    """The little of a TrainJob that a report asks for: some hundred come each second, and a whole one takes long."""

    metadata: Meta
    spec: _Spec = _Spec()
    status: _Status | None = None

    @property
    def is_finished(self) -> bool:
        """Whether it is over."""
        return is_finished((self.status and self.status.conditions) or ())


class _JobSet(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()


class StatusServer:
    """Takes reports. Start and stop it through its `listener`."""

    def __init__(
        self,
        settings: ListenerSettings,
        callers: Callers,
        reports: Reports,
        trainings: Trainings,
        stores: Stores,
        *,
        tls: ssl.SSLContext | None,
        is_synced: Callable[[], bool],
        answered: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._callers = callers
        self._reports = reports
        self._trainings = trainings
        self._stores = stores
        self._is_synced = is_synced
        self._answered = answered
        self.listener = Listener(self._serve, settings, tls=tls)

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        try:
            response = await self._tell(request) if request.method == "GET" else await self._take(request)
        except Exception as error:  # noqa: BLE001 whatever happens becomes a Status
            refusal = _refusal(error)
            response = web.Response(status=refusal.code, body=msgspec.json.encode(refusal.status()), headers=_JSON)
            if refusal.retry_after is not None:
                response.headers["Retry-After"] = str(max(1, round(refusal.retry_after)))
        if request.method != "GET":
            self._answered(response.status)
        return response

    async def _tell(self, request: web.BaseRequest) -> web.Response:
        """Answer how training stands, when it no longer runs or has been waited for long enough."""
        key = job_of(path_of(request), "training")
        if key is None:
            raise _no_route()
        seconds = read_wait(request.query_string)
        async with asyncio.timeout(HANDLER_SECONDS):
            pod, uid, _ = await self._caller(request, key)
        stands, waited = await self._trainings.wait(key, uid, pod, seconds)
        response = web.Response(body=msgspec.json.encode({"training": stands}), headers=_JSON)
        if not waited:
            response.headers["Retry-After"] = str(AGAIN_SECONDS)
        return response

    async def _take(self, request: web.BaseRequest) -> web.Response:
        async with asyncio.timeout(HANDLER_SECONDS):
            return web.Response(body=await self._answer(request), headers=_JSON)

    async def _caller(self, request: web.BaseRequest, key: Key) -> tuple[str, str, _Job]:
        """Return the pod that a request is from, its JobSet's uid and its TrainJob."""
        user = await self._callers.identify(request.headers.get("Authorization", ""), key, request.remote or "")
        job = self._job(key)
        uid = self._jobset_uid(key, job)
        return self._callers.check_member(user, key, uid), uid, job

    async def _answer(self, request: web.BaseRequest) -> bytes:
        key = job_of(path_of(request)) if request.method == "POST" else None
        if key is None:
            raise _no_route()
        if (request.content_length or 0) > BODY_LIMIT:
            raise _too_large()
        _, _, job = await self._caller(request, key)
        try:
            body = await body_of(request, BODY_LIMIT)
        except web.HTTPRequestEntityTooLarge:
            raise _too_large() from None
        report = read_report(body)
        if report is None:
            return b"{}"
        if job.is_finished:
            raise RefusalError(409, f"TrainJob {key} is over: it keeps the progress that it ended with")
        self._reports.take(key, job.metadata.uid, report)
        return msgspec.json.encode({"trainerStatus": report.status})

    def _job(self, key: Key) -> _Job:
        if not self._is_synced():
            text = "this replica has just begun, and does not know all TrainJobs yet"
            raise RefusalError(503, text, retry_after=LATER)
        try:
            found = self._stores.train_jobs.decode(key, _Job)
        except DecodeError:
            found = None
        if found is None or found.spec.managed_by not in {"", names.MANAGED_BY_TRAINER}:
            raise RefusalError(404, f"there is no TrainJob {key} that this operator runs")
        if found.metadata.deletion_timestamp is not None:
            raise RefusalError(409, f"TrainJob {key} is being deleted")
        return found

    def _jobset_uid(self, key: Key, job: _Job) -> str:
        """Return the uid of the JobSet that a TrainJob controls; empty if there is none."""
        meta = (self._stores.job_sets.decode(key, _JobSet) or _JobSet()).metadata
        by = meta.controller
        return meta.uid if by is not None and by.uid == job.metadata.uid else ""


def _advice(error: Exception) -> dict[str, str]:
    """Return what an admin must do about an error, where that is known."""
    if not isinstance(error, ForbiddenError):
        return {}
    return {
        "do": "allow the operator's account to create tokenreviews.authentication.k8s.io, which is a right on the "
        "cluster also for an operator of one namespace, or turn the feature gate TrainJobStatus off"
    }


def _no_route() -> RefusalError:
    return RefusalError(
        404,
        f"progress is reported by POST to {names.status_path('NAMESPACE', 'NAME')}, and how training stands is asked "
        f"by GET of {names.training_path('NAMESPACE', 'NAME')}",
    )


def _too_large() -> RefusalError:
    return RefusalError(413, f"a report of more than {BODY_LIMIT} bytes is not read: report fewer metrics")


def _refusal(error: Exception) -> RefusalError:
    """Return what an error means for the caller; of what is not the caller's doing, no more than that it happened."""
    if isinstance(error, RefusalError):
        return error
    if isinstance(error, KubeError | TimeoutError):
        log.warning("a caller could not be judged", extra={"error": repr(error), **_advice(error)})
        return RefusalError(503, "the API server did not say who this is: report again later", retry_after=LATER)
    log.error("a report could not be answered", exc_info=error)
    return RefusalError(500, "the status server failed; its log has the details")
