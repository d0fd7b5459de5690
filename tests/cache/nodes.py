"""Pods of a cache as processes of this machine: `node` with the environment that a pod has."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from functools import partial
from typing import TYPE_CHECKING

from lab.processes import wait_for
from trainplane.client.backends.process.addresses import free_port

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "a token of this namespace"


class Nodes:
    """The pods of one cache."""

    def __init__(self, root: Path, size: int, **env: str) -> None:
        self.root, self.size, self._env = root, size, env
        self.host = "127.0.0.1"
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        kinds = ("cache", "data", "health")
        ports = iter(free_ports(len(kinds) * size))
        self.ports = [{kind: next(ports) for kind in kinds} for _ in range(size)]
        (root / "key").write_bytes(os.urandom(32))

    @property
    def address(self) -> str:
        return f"{self.host}:{self.ports[0]['cache']}"

    def start(self, index: int) -> None:
        ports = self.ports[index]
        env = {
            **os.environ,
            "CACHE_KEY_FILE": str(self.root / "key"),
            "STORAGE_URI": str(self.root / "data"),
            "BLOCK_BYTES": "16384",
            "HEAD_ADDRESS": self.address,
            "HOSTNAME": f"job-cache-0-{index}",
            "JOB_COMPLETION_INDEX": str(index),
            "CLUSTER_SIZE": str(self.size),
            "CACHE_DIR": str(self.root / f"disk-{index}"),
            "CACHE_PORT": str(ports["cache"]),
            "DATA_PORT": str(ports["data"]),
            "HEALTH_PORT": str(ports["health"]),
            "WORKER_ADDRESS": f"{self.host}:{ports['data']}",
            **self._env,
        }
        command = [sys.executable, "-m", "trainplane.cache", "node"]
        self._running[index] = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)

    def end(self, index: int) -> int:
        """Ask a pod to end; return its exit code."""
        self._running[index].terminate()
        return self.wait(index)

    def wait(self, index: int) -> int:
        """Return a pod's exit code, once it has ended."""
        return self._running.pop(index).wait(100)

    def kill(self, index: int) -> None:
        process = self._running.pop(index)
        process.kill()
        process.wait()

    def get(self, index: int, path: str) -> tuple[int, str]:
        """Return what a pod answers on its health port; 0 where it does not."""
        url = f"http://127.0.0.1:{self.ports[index]['health']}{path}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self, *indices: int) -> None:
        for index in indices or range(self.size):
            wait_for(f"pod {index}", partial(self._is_ready, index), seconds=100)

    def _is_ready(self, index: int) -> bool:
        return self.get(index, "/ready")[0] == 200

    def close(self) -> None:
        for index in list(self._running):
            self.kill(index)


def free_ports(count: int) -> list[int]:
    """Return ports of no range that the kernel gives out: whoever has one back after a restart still finds it free."""
    found: list[int] = []
    while len(found) < count:
        found.append(free_port(found))
    return found
