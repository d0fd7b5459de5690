"""Names of pods and paths of mounts, as they are on one machine. Pure, but for finding free ports.

In a cluster each pod has an address of its own; here all have that of the loopback device, and are told apart by port.
So `job-node-0-0.job:29500` becomes `127.0.0.1:23417`, wherever it stands: in variables, arguments, files. A variable
that holds only a port is that of the host named beside it: PET_MASTER_PORT with PET_MASTER_ADDR.
"""

from __future__ import annotations

import contextlib
import random
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trainplane.client.backends.local.pods import LocalJobSet

LOOPBACK: Final = "127.0.0.1"
PORTS: Final = range(20000, 32000)
"""Where ports are taken from: below those that systems give to outgoing connections."""
_HOSTS: Final = ("_ADDR", "_ADDRESS", "_URI", "_HOST", "_IP")
_TRIES: Final = 200


def free_port(taken: Iterable[int] = ()) -> int:
    """Return a port that nobody listens on at this moment."""
    avoided = set(taken)
    for _ in range(_TRIES):
        port = random.choice(PORTS)  # noqa: S311 no secret
        if port in avoided:
            continue
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("", port))
            return port
    raise OSError(f"no port between {PORTS.start} and {PORTS.stop} is free")


@dataclass
class Addresses:
    """Where the pods of a job are on this machine."""

    hosts: frozenset[str]
    """Hostnames of all pods, without the subdomain."""
    subdomain: str
    find_port: Callable[[Iterable[int]], int] = free_port
    moved: dict[tuple[str, int], int] = field(default_factory=dict)
    """Which port stands for a host's port."""

    def __post_init__(self) -> None:
        names = "|".join(sorted(map(re.escape, self.hosts), key=len, reverse=True)) or "(?!)"
        domain = rf"(?:\.{re.escape(self.subdomain)}(?:\.[a-z0-9-]+\.svc(?:\.[a-z0-9.-]*[a-z0-9])?)?)?"
        self._name = re.compile(rf"(?<![\w.-])({names}){domain}(?::(\d{{1,5}}))?(?![\w-])")
        self._host_line = re.compile(rf"(?:{names}){domain}(?: slots=(\d+)|:(\d+))")

    @classmethod
    def of(cls, plan: LocalJobSet, find_port: Callable[[Iterable[int]], int] = free_port) -> Addresses:
        """Return the addresses of a plan's pods."""
        return cls(frozenset(plan.hostname(place) for place in plan.places), plan.subdomain, find_port)

    def port(self, host: str, port: int) -> int:
        """Return the port that stands for a port of a host."""
        key = (host, port)
        if key not in self.moved:
            self.moved[key] = self.find_port(self.moved.values())
        return self.moved[key]

    def translate_file(self, text: str) -> str:
        """Return a file with all names of pods replaced; MPI's list of hosts becomes one host with all their slots."""
        lines = [self._host_line.fullmatch(line) for line in text.splitlines()]
        hosts = [line for line in lines if line]
        if not hosts or len(hosts) < len(lines):
            return self.translate(text)
        slots = sum(int(host[1] or host[2]) for host in hosts)
        return f"{LOOPBACK} slots={slots}\n" if hosts[0][1] else f"{LOOPBACK}:{slots}\n"

    def translate(self, text: str) -> str:
        """Return a text with all names of pods replaced."""

        def replaced(match: re.Match[str]) -> str:
            return f"{LOOPBACK}:{self.port(match[1], int(match[2]))}" if match[2] else LOOPBACK

        return self._name.sub(replaced, text)

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return variables with names of pods replaced, and ports of their own moved with them."""
        return {name: self._port_beside(name, value, variables) for name, value in variables.items()}

    def _port_beside(self, name: str, value: str, variables: Mapping[str, str]) -> str:
        stem = name.removesuffix("_PORT")
        if stem == name or not value.isdecimal():
            return self.translate(value)
        for ending in _HOSTS:
            host = self._name.fullmatch(variables.get(stem + ending, ""))
            if host and not host[2]:
                return str(self.port(host[1], int(value)))
        return value
