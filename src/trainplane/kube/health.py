"""Health endpoints: is the process alive, and may it be sent work?

Alive means that the event loop turns: a ticker measures how late it is woken. Ready means that every named check says
so. The format is the one people know from Kubernetes: `/readyz?verbose` lists `[+]name ok` and `[-]name failed: why`,
`/readyz/NAME` asks one check, `?exclude=NAME` leaves one out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiohttp import web

from trainplane.kube.listener import Listener, ListenerSettings, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trainplane.kube.clock import Clock

    Check = Callable[[], str | None]


@dataclass(slots=True)
class LoopLag:
    """Measures how late the event loop runs what is due.

    Attributes:
        clock: tells the time and wakes the ticker.
        interval: seconds between ticks; a tenth of a second notices a stall that reviews would feel.
        limit: seconds of lag at which the process no longer counts as alive; 5 is far beyond a full garbage
            collection or a large list, and near enough that a wedged process is restarted within a minute.
        last: lag of the latest tick, in seconds.
        worst: largest lag since the ticker began or `take_worst` was called.
    """

    clock: Clock
    interval: float = 0.1
    limit: float = 5.0
    last: float = 0.0
    worst: float = 0.0
    _due: float | None = None

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self._due = self.clock.monotonic() + self.interval
            await self.clock.sleep(self.interval)
            self.last = max(0.0, self.clock.monotonic() - self._due)
            self.worst = max(self.worst, self.last)

    def current(self) -> float:
        """Return the lag at this instant: that of the latest tick, or of the one that is overdue, if longer."""
        overdue = 0.0 if self._due is None else self.clock.monotonic() - self._due
        return max(self.last, overdue)

    def take_worst(self) -> float:
        """Return the largest lag since the last call, for a gauge that is scraped."""
        worst, self.worst = max(self.worst, self.current()), 0.0
        return worst

    def check(self) -> str | None:
        """Return what is wrong if the lag is over the limit."""
        lag = self.current()
        return None if lag <= self.limit else f"the event loop is {lag:.1f} s late, more than {self.limit:g} s"


class HealthServer:
    """Serves liveness and readiness. Start and stop it through its `listener`.

    A check returns None when all is well and otherwise why not; one that raises counts as failed. Checks are quick and
    never wait: a probe must not hang on what it probes.

    Args:
        settings: where to listen.
        live: named checks of `/healthz`; usually just a `LoopLag`.
        ready: named checks of `/readyz`, e.g. stores in sync, certificates loaded, servers listening.
        live_path: liveness endpoint; `/livez` always answers too.
        ready_path: readiness endpoint.
    """

    def __init__(
        self,
        settings: ListenerSettings,
        *,
        live: Mapping[str, Check] | None = None,
        ready: Mapping[str, Check] | None = None,
        live_path: str = "/healthz",
        ready_path: str = "/readyz",
    ) -> None:
        live_checks = {"ping": _ping, **(live or {})}
        self._groups: dict[str, dict[str, Check]] = {
            "/livez": live_checks,
            live_path: live_checks,
            ready_path: {"ping": _ping, **(ready or {})},
        }
        self.listener = Listener(self._serve, settings)

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        path = path_of(request).rstrip("/")
        name = None
        checks = self._groups.get(path)
        if checks is None:
            path, _, name = path.rpartition("/")
            checks = self._groups.get(path, {})
            if name not in checks:
                return web.Response(status=404, text="not found\n")
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="health is asked with GET\n", headers={"Allow": "GET, HEAD"})
        excluded = set(request.query.getall("exclude", [])) if name is None else checks.keys() - {name}
        status, text = report(path.rpartition("/")[2], checks, excluded, verbose="verbose" in request.query)
        headers = {"Cache-Control": "no-cache, no-store", "X-Content-Type-Options": "nosniff"}
        return web.Response(status=status, text=text, headers=headers)


def report(group: str, checks: Mapping[str, Check], excluded: set[str], *, verbose: bool) -> tuple[int, str]:
    """Return the HTTP status and text for a group of checks; a failure always comes with the whole list."""
    lines: list[str] = []
    failed = False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        fault = _ask(check)
        failed = failed or fault is not None
        lines.append(f"[+]{name} ok" if fault is None else f"[-]{name} failed: {fault}")
    if not failed and not verbose:
        return 200, "ok"
    lines.append(f"{group} check {'failed' if failed else 'passed'}\n")
    return (500 if failed else 200), "\n".join(lines)


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 a broken check is a failed one, and must not hide the others
        return f"the check itself raised {type(error).__name__}: {error}"


def _ping() -> None:
    """Pass: being asked is being alive."""
