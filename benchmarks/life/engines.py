"""What engines of a cluster have used until now: CPU time, memory, bytes to and from the API server."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lab.processes import run

if TYPE_CHECKING:
    from lab.cluster import Cluster

_SOCKET: Final = re.compile(r"^\d+\s+\d+\s+(?P<here>\S+)\s+\S+:(?P<port>\d+)\s.*?pid=(?P<pid>\d+),")
_SENT: Final = re.compile(r"bytes_sent:(\d+)")
_RECEIVED: Final = re.compile(r"bytes_received:(\d+)")


@dataclass(frozen=True)
class Used:
    """What each engine used until a moment, or between two; CPU in seconds, memory in MB."""

    cpu: dict[str, float]
    rss: dict[str, float]
    sockets: dict[str, dict[str, int]]
    """Engine → its end of a connection to the API server → bytes both ways."""

    def since(self, before: Used) -> Used:
        """Return what was used between two moments; connections that ended meanwhile are not counted."""
        cpu = {name: seconds - before.cpu.get(name, 0.0) for name, seconds in self.cpu.items()}
        sockets = {
            name: {here: count - before.sockets.get(name, {}).get(here, 0) for here, count in counts.items()}
            for name, counts in self.sockets.items()
        }
        return Used(cpu, self.rss, sockets)

    def bytes(self) -> dict[str, int]:
        """Return the bytes of each engine."""
        return {name: sum(counts.values()) for name, counts in self.sockets.items()}


def used(*clusters: Cluster) -> Used:
    """Return what the running engines of clusters have used, of those with one name together."""
    cpu: Counter[str] = Counter()
    rss: Counter[str] = Counter()
    sockets: dict[str, dict[str, int]] = {}
    for one in map(_used, clusters):
        cpu.update(one.cpu)
        rss.update(one.rss)
        for name, counts in one.sockets.items():
            sockets.setdefault(name, {}).update(counts)
    return Used(dict(cpu), dict(rss), sockets)


def _used(cluster: Cluster) -> Used:
    running = {name: engine.process for name, engine in cluster.engines().items() if engine.process.alive()}
    cpu = {name: process.cpu_seconds() for name, process in running.items()}
    rss = {name: process.rss_mb() for name, process in running.items()}
    return Used(cpu, rss, _sockets(cluster, {process.pid: name for name, process in running.items()}))


def _sockets(cluster: Cluster, names: dict[int, str]) -> dict[str, dict[str, int]]:
    """Ask the kernel about connections: only the network is entered, so process ids are the machine's."""
    enter = ["nsenter", f"--target={cluster.sandbox.holder.pid}", "--net", "--"]
    lines = run([*enter, "ss", "-tinpHO", "state", "established"]).stdout
    return parse_sockets(lines, port=cluster.port, names=names)


def parse_sockets(lines: str, *, port: int, names: dict[int, str]) -> dict[str, dict[str, int]]:
    """Return the bytes of connections to a port, by the name of the process and its end of the connection."""
    found: dict[str, dict[str, int]] = {}
    for line in lines.splitlines():
        socket = _SOCKET.match(line)
        if socket is None or int(socket["port"]) != port or int(socket["pid"]) not in names:
            continue
        numbers = (pattern.search(line) for pattern in (_SENT, _RECEIVED))
        here = f"{socket['pid']} {socket['here']}"
        found.setdefault(names[int(socket["pid"])], {})[here] = sum(int(one[1]) for one in numbers if one)
    return found
