"""Jobs whose pods print numbered lines, and what a user sees of them through the hub, with kubectl alone."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab import node
from lab.engines import binary
from lab.images import reference
from tests.fleet import objects

if TYPE_CHECKING:
    from pathlib import Path

    from lab.processes import Result
    from tests.fleet.team import Team

Tree = dict[str, Any]

ROOT = "/apis/hub.trainplane.dev/v1alpha1"

STEADY = "steady"
"""A runtime: numbered lines on both streams, a few hundred each second, until told to stop; then how many they were."""
BURST = "burst"
"""Another: 20,000 lines as fast as it can, and an end a second later: of a process that ends in the same moment, the
container runtime itself loses what it printed last on a busy machine, and no kubelet has it."""
RESTARTING = "restarting"
"""Another: its first run prints 50 lines and fails, its second prints 5 and waits to be told to stop."""
FAILING = "failing"
"""Another: it waits to be told to stop, and raises then."""

_STEADY = """
import os, sys, time
number = 0
while not os.path.exists("/tmp/stop"):
    for _ in range(5):
        (sys.stdout if number % 3 else sys.stderr).write(f"line {number}\\n")
        number += 1
    sys.stdout.flush()
    time.sleep(0.01)
sys.stdout.write(f"end {number}")
sys.stdout.flush()
time.sleep(1)
"""
_BURST = """
import sys, time
sys.stdout.write("".join(f"line {number}\\n" for number in range(20000)))
sys.stdout.flush()
time.sleep(1)
"""
_RESTARTING = """
import os, time
if not os.path.exists("/shared/again"):
    open("/shared/again", "w").close()
    print(*(f"first {number}" for number in range(50)), sep="\\n", flush=True)
    raise SystemExit(3)
print(*(f"second {number}" for number in range(5)), sep="\\n", flush=True)
while not os.path.exists("/tmp/stop"):
    time.sleep(0.1)
"""
_FAILING = """
import os, time
while not os.path.exists("/tmp/stop"):
    time.sleep(0.1)
raise KeyError("lable")
"""


def runtimes() -> list[Tree]:
    """Return the runtimes of these tests; they are on all clusters."""
    volume = {"name": "shared", "emptyDir": {}}
    mount = {"name": "shared", "mountPath": "/shared"}
    restarting = _runtime(RESTARTING, _RESTARTING, restartPolicy="OnFailure", volumes=[volume])
    (job,) = restarting["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["backoffLimit"] = 3
    job["template"]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    return [_runtime(STEADY, _STEADY), _runtime(BURST, _BURST), _runtime(FAILING, _FAILING), restarting]


def _runtime(name: str, program: str, **pod: Any) -> Tree:
    tree = objects.runtime(f"hub-{name}", image=reference("python"))
    (job,) = tree["spec"]["template"]["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]["template"]["spec"]
    spec |= {
        "nodeSelector": {"kubernetes.io/hostname": node.NAME},
        "tolerations": [objects.REAL],
        "terminationGracePeriodSeconds": 1,
        **pod,
    }
    spec["containers"][0] |= {"imagePullPolicy": "Never", "command": ["python3", "-c", program]}
    return tree


@dataclass(frozen=True)
class Seen:
    """A team, and its jobs as the hub shows them."""

    team: Team

    def submit(self, name: str, runtime: str, nodes: int = 1) -> None:
        self.team.submit(name, runtime=f"hub-{runtime}", nodes=nodes, cpu="100m")

    def tell(self, name: str) -> None:
        """Tell the pods of a job to stop."""
        worker = self.team.cluster("worker1")
        for pod in self.team.pods(name, on="worker1"):
            worker.touch(self.team.namespace, pod["metadata"]["name"], "/tmp/stop")

    def path(self, name: str, part: str = "") -> str:
        return f"{ROOT}/namespaces/{self.team.namespace}/trainjobs/{name}{part and f'/{part}'}"

    def raw(self, name: str, part: str = "", *, kubeconfig: Path | None = None) -> Result:
        """`kubectl get --raw`, as the administrator or another user."""
        flags = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        return self.team.fleet.hub.kubectl("get", *flags, "--raw", self.path(name, part), check=False)

    def tree(self, name: str, part: str = "") -> Tree:
        found: Tree = json.loads(self.raw(name, part).stdout)
        return found

    def log(self, name: str, query: str = "") -> list[str]:
        """Return the lines of a log; empty while there is none."""
        return self.raw(name, f"log?{query}").stdout.splitlines()

    def follow(self, name: str, query: str, output: Path) -> subprocess.Popen[bytes]:
        """Begin to follow a log with kubectl, into a file."""
        path = self.path(name, f"log?follow=true&{query}")
        command = [binary("kubectl"), f"--kubeconfig={self.team.fleet.hub.kubeconfig}", "get", "--raw", path]
        with output.open("wb") as file:
            return subprocess.Popen(command, stdout=file)

    def lines(self, name: str) -> int:
        """Return how many lines of a job are kept."""
        return len(self.log(name))

    def wait_lines(self, name: str, more: int) -> None:
        """Wait until so many more lines are kept than now."""
        wanted = self.lines(name) + more
        self.team.wait(f"{more} more lines of {name}", lambda: self.lines(name) >= wanted)


def whole(lines: list[str]) -> bool:
    """Return whether these are all lines of a steady pod, each once; its two streams have an order of their own.

    Standard error may come before what standard output printed a moment earlier, so each stream is looked at alone.
    """
    *numbered, last = lines
    numbers = [int(line.removeprefix("line ")) for line in numbered]
    errors = [number for number in numbers if number % 3 == 0]
    output = [number for number in numbers if number % 3]
    expected = range(int(last.removeprefix("end ")))
    return errors == [n for n in expected if n % 3 == 0] and output == [n for n in expected if n % 3]
