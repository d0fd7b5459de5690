"""The SDK for scripts and notebooks: `aio.AsyncTrainerClient` without `await`.

One thread runs one event loop; each call hands a coroutine to it and waits, so a notebook's own loop is not touched.
The methods are made from the asynchronous ones: same names, arguments, results, errors and documentation.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from trainplane.client.aio import AsyncTrainerClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
    from typing import Self

    from trainplane.client.backends.backend import Backend
    from trainplane.client.opening import BackendConfig
    from trainplane.client.types.jobs import TrainJob
    from trainplane.kube.loopthread import LoopThread

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[AsyncTrainerClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[TrainerClient, P], R]:
    """Return a method that runs the asynchronous one to its end."""

    @functools.wraps(method)
    def call(self: TrainerClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._loop.run(method(self.asynchronous, *args, **kwargs))

    return call


def _attending(
    method: Callable[Concatenate[AsyncTrainerClient, P], Coroutine[Any, Any, TrainJob]],
) -> Callable[Concatenate[TrainerClient, P], TrainJob]:
    """Return a blocking method that shows progress; Ctrl-C ends the waiting, and says that the job goes on."""

    @functools.wraps(method)
    def call(self: TrainerClient, /, *args: P.args, **kwargs: P.kwargs) -> TrainJob:
        from trainplane.client.display.live import attend  # noqa: PLC0415 asyncio

        try:
            return attend(self._loop, functools.partial(method, self.asynchronous), args, kwargs)
        except KeyboardInterrupt:
            raise _say_it_goes_on(*args, **kwargs) from None

    return call


def _iterating(
    method: Callable[Concatenate[AsyncTrainerClient, P], AsyncGenerator[R, None]],
) -> Callable[Concatenate[TrainerClient, P], Generator[R, None, None]]:
    """Return a method that iterates over the asynchronous one; Ctrl-C as above, closing it closes the stream."""

    @functools.wraps(method)
    def iterate(self: TrainerClient, /, *args: P.args, **kwargs: P.kwargs) -> Generator[R, None, None]:
        try:
            yield from self._loop.iterate(method(self.asynchronous, *args, **kwargs))
        except KeyboardInterrupt:
            raise _say_it_goes_on(*args, **kwargs) from None

    return iterate


def _say_it_goes_on(*args: object, **kwargs: object) -> KeyboardInterrupt:
    """Say it, and return what to raise."""
    from trainplane.client.display.interrupted import interrupted  # noqa: PLC0415 rare

    name = args[0] if args else kwargs.get("name")
    print(  # noqa: T201 for the person who pressed Ctrl-C
        f"\nTrainJob {name} goes on without you. Come back with client.wait_for_job_status({name!r}) or "
        f"client.get_job_logs({name!r}, follow=True); end it with client.delete_job({name!r}).",
        file=sys.stderr,
    )
    return interrupted()


class TrainerClient:
    """From a Python function to a distributed run, on a cluster or on this machine.

    Connections close with `close`, with `with`, or when nobody holds the client any more. Jobs go on.
    """

    def __init__(self, backend_config: BackendConfig | None = None, *, backend: Backend | None = None) -> None:
        """Choose where jobs run: the cluster that kubectl would use here, or what `backend_config` says.

        `backend` brings one that is there already; then the configuration is not looked at.

        Raises:
            TrainplaneError: the configuration cannot be used; nothing was sent yet.
        """
        from trainplane.kube.loopthread import LoopThread  # noqa: PLC0415 asyncio is slow to import

        self.asynchronous = AsyncTrainerClient(backend_config, backend=backend)
        self._loop = LoopThread("TrainerClient")
        self._end = weakref.finalize(self, _close, self._loop, self.asynchronous)

    @property
    def backend(self) -> Backend:
        """Where jobs run; it belongs to the client's own loop."""
        return self.asynchronous.backend

    list_runtimes = _blocking(AsyncTrainerClient.list_runtimes)
    get_runtime = _blocking(AsyncTrainerClient.get_runtime)
    get_runtime_packages = _blocking(AsyncTrainerClient.get_runtime_packages)
    train = _blocking(AsyncTrainerClient.train)
    submit_job = _blocking(AsyncTrainerClient.submit_job)
    list_jobs = _blocking(AsyncTrainerClient.list_jobs)
    get_job = _blocking(AsyncTrainerClient.get_job)
    get_job_document = _blocking(AsyncTrainerClient.get_job_document)
    get_job_logs = _iterating(AsyncTrainerClient.get_job_logs)
    stream_job_logs = _iterating(AsyncTrainerClient.stream_job_logs)
    get_job_events = _blocking(AsyncTrainerClient.get_job_events)
    wait_for_job_status = _attending(AsyncTrainerClient.wait_for_job_status)
    watch_job = _iterating(AsyncTrainerClient.watch_job)
    follow_job = _iterating(AsyncTrainerClient.follow_job)
    observe_job = _iterating(AsyncTrainerClient.observe_job)
    explain_queue = _blocking(AsyncTrainerClient.explain_queue)
    describe_job = _blocking(AsyncTrainerClient.describe_job)
    explain_job = _blocking(AsyncTrainerClient.explain_job)
    get_overview = _blocking(AsyncTrainerClient.get_overview)
    suspend_job = _blocking(AsyncTrainerClient.suspend_job)
    resume_job = _blocking(AsyncTrainerClient.resume_job)
    scale_job = _blocking(AsyncTrainerClient.scale_job)
    retry_job = _blocking(AsyncTrainerClient.retry_job)
    render_job = _blocking(AsyncTrainerClient.render_job)
    compare_job = _blocking(AsyncTrainerClient.compare_job)
    download_output = _blocking(AsyncTrainerClient.download_output)
    delete_job = _blocking(AsyncTrainerClient.delete_job)

    def close(self) -> None:
        """Close connections and end the thread; closing twice does nothing. Jobs go on.

        Other threads that wait in a call get a RuntimeError that says so.
        """
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _close(loop: LoopThread, asynchronous: AsyncTrainerClient) -> None:
    loop.close(asynchronous.close())
