"""Containers by docker or podman: a network for each job, in which every pod has an address and knows all others'."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.backends.container import options
from trainplane.client.backends.container.engine import engine_of, last_line, unnamed_file
from trainplane.client.backends.local import machine
from trainplane.client.backends.local.events import ignored
from trainplane.client.backends.local.runner import Exit, WaitingError
from trainplane.client.backends.local.volumes import Mount
from trainplane.client.errors import EngineError, InvalidError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from ipaddress import IPv4Network

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.container.engine import Engine
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.client.backends.local.runner import Launch
    from trainplane.lifecycle.events import EventContent

NETWORKS: Final = ipaddress.IPv4Network("10.192.0.0/11")
"""Where networks of jobs are taken from."""
_REPORTS: Final = "/var/run/trainplane"
"""Where a container has the folder in which it reports progress."""
_TRIES: Final = 20
_RESERVED: Final = 2
"""Addresses of a network that no pod has: its own, and the gateway's."""
_JOIN_SECONDS: Final = 0.1
_TIMES_TO_JOIN: Final = 300
_KILLED: Final = 137
_INSPECT: Final = "{{.State.Running}} {{.State.OOMKilled}} {{.State.ExitCode}} {{.State.StartedAt}}"
_NEVER: Final = "0001-01-01"
"""When a container started that never did."""
_NOT_STARTED: Final = Exit(128, "StartError", "it could not be started: its log has what the engine said")


class ContainerRunner:
    """Starts the containers of one job."""

    def __init__(self, folder: JobFolder, settings: Tree) -> None:
        """Take the job's folder and settings: the engine, its options, the network's name."""
        self._folder = folder
        self._settings = settings
        self._engine: Engine = engine_of(settings)
        self._plan: LocalJobSet | None = None
        self._network: IPv4Network | None = None

    def judge(self, plan: LocalJobSet) -> Sequence[EventContent]:
        """Return what has no effect on containers; refuse what cannot be had."""
        for job, container in plan.containers:
            if not container.get("image"):
                raise InvalidError(f"spec.trainer.image: container {container['name']} of job {job.name} has no image")
        if not self._settings["remote"]:
            machine.must_have_gpus(plan)
        if any(trees.get(job.template, "spec", "imagePullSecrets") for job in plan.jobs):
            return [ignored("imagePullSecrets", f"use `{self._engine.name} login`")]
        return []

    async def prepare(self, plan: LocalJobSet) -> None:
        """Make the job's network, unless it is there and large enough."""
        self._plan = plan
        size = len(list(plan.places)) + _RESERVED + 1
        if self._network and self._network.num_addresses > size:
            return
        await self.clean()
        prefix = min(24, 32 - size.bit_length())
        problem = ""
        for _ in range(_TRIES):
            network = _some_network(prefix)
            labels = ("--label", f"{options.LABEL_JOB}={plan.name}", "--label", f"{options.LABEL_UID}={plan.uid}")
            name = self._settings["network"]
            done = await self._engine.run("network", "create", "--subnet", str(network), *labels, name, check=False)
            if done.code == 0:
                self._network = network
                return
            problem = last_line(done.error)
        raise EngineError(f"{self._engine.name} network create: {problem}")

    def address(self, place: PodIndex) -> str:
        """Return the address of a pod in the job's network."""
        if self._plan is None or self._network is None:
            raise EngineError("the runner was not prepared")
        return str(self._network[self._plan.number(place) + _RESERVED])

    def translate(self, text: str) -> str:
        """Return the text: names and paths mean in a container what they mean in a cluster."""
        return text

    async def start(self, launch: Launch) -> RunningContainer:
        """Create and start a container. Nothing of it is left when the caller is cancelled.

        Raises:
            WaitingError: its image cannot be had now.
            EngineError: the engine refuses it.
        """
        plan = self._plan
        if plan is None:
            raise EngineError("the runner was not prepared")
        image = launch.container["image"]
        await self._ensure(image, launch.container.get("imagePullPolicy") or self._settings["pull_policy"])
        hosts: dict[str, str] = {}
        for place in plan.places:
            name, address = plan.hostname(place), self.address(place)
            hosts |= {f"{name}.{plan.subdomain}": address, name: address}
        network = {"name": self._settings["network"], "ip": self.address(launch.place)}
        if not launch.alone:
            network = {"container": await self._first_of(launch)}
        launch = self._reporting(launch)
        variables = options.Variables.of(launch.variables)
        made = options.create_options(
            launch,
            uid=plan.uid,
            gpus=machine.gpu_numbers(plan, launch.place, launch.container),
            network=network,
            hosts=hosts,
            podman=self._engine.is_podman,
        )
        words = [*made, *variables.options, *self._settings["run_options"], *options.command_words(launch, image)]
        await self._engine.run("rm", "--force", launch.identity, check=False)
        try:
            await self._create(words, variables)
            process = await asyncio.create_subprocess_exec(
                *self._engine.line("start", "--attach", launch.identity),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except asyncio.CancelledError:
            await self._engine.run("rm", "--force", launch.identity, check=False)
            raise
        limited = trees.get(launch.container, "resources", "limits", "memory") is not None
        return RunningContainer(process, launch.identity, self._engine, limited=limited, keep=self._settings["keep"])

    async def _create(self, words: Sequence[str], variables: options.Variables) -> None:
        with contextlib.ExitStack() as held:
            files = [held.enter_context(unnamed_file(variables.file))] if variables.file else []
            named = [word for file in files for word in ("--env-file", f"/dev/fd/{file}")]
            create = ("create", "--pull", "never", *named, *words)
            await self._engine.run(*create, whole=True, environment=variables.environment, files=files)

    async def clean(self) -> None:
        """Remove the network."""
        if not self._settings["keep"]:
            await self._engine.run("network", "rm", self._settings["network"], check=False)
        self._network = None

    def end(self, records: Iterable[Tree]) -> None:
        """End and remove containers that were recorded, and the network."""
        for record in records:
            self._engine.call("kill", record["container"], check=False)  # removal alone would give it time to end
            self._engine.call("rm", "--force", record["container"], check=False)
        self._engine.call("network", "rm", self._settings["network"], check=False)

    async def _ensure(self, image: str, policy: str) -> None:
        """Have an image, as the pull policy says."""
        there = (await self._engine.run("image", "inspect", "--format", "{{.Id}}", image, check=False)).code == 0
        if policy == "Never" and not there:
            raise WaitingError("ErrImageNeverPull", f"image {image} is not on this machine")
        if policy == "Always" or not there:
            done = await self._engine.run("pull", "--quiet", image, check=False)
            if done.code:
                raise WaitingError("ImagePullBackOff", f"image {image}: {last_line(done.error)}")

    def _reporting(self, launch: Launch) -> Launch:
        """Return a launch whose container can report progress; on another machine it has no folder of ours."""
        if self._settings["remote"]:
            return launch
        file = self._folder.progress
        file.parent.mkdir(parents=True, exist_ok=True)
        report = {names.STATUS_FILE: f"{_REPORTS}/{file.name}"}
        mounts = (*launch.mounts, Mount(file.parent, _REPORTS))
        return replace(launch, variables={**launch.variables, **report}, mounts=mounts)

    async def _first_of(self, launch: Launch) -> str:
        """Return the pod's first container once it runs: the others share its address."""
        spec = launch.pod["spec"]
        first = f"{launch.pod['metadata']['name']}.{spec['containers'][0]['name']}"
        for _ in range(_TIMES_TO_JOIN):
            done = await self._engine.run("container", "inspect", "--format", _INSPECT, first, check=False)
            if done.output.startswith("true"):
                return first
            await asyncio.sleep(_JOIN_SECONDS)
        raise EngineError(f"container {first} did not run, whose address {launch.identity} shares")


class RunningContainer:
    """A container that was started."""

    def __init__(
        self, process: asyncio.subprocess.Process, name: str, engine: Engine, *, limited: bool, keep: bool
    ) -> None:
        """Watch a container, which may have a limit of memory, through the engine's process that is attached to it."""
        self._process = process
        self._name = name
        self._engine = engine
        self._limited = limited
        self._keep = keep
        self._stopped = False

    @property
    def output(self) -> asyncio.StreamReader:
        """What it prints."""
        if self._process.stdout is None:
            raise EngineError("the engine's process has no output")
        return self._process.stdout

    @property
    def record(self) -> Tree:
        """What is needed to remove it when the supervisor cannot."""
        return {"container": self._name}

    async def wait(self) -> Exit:
        """Return how it ended, and remove it."""
        code = await self._process.wait()
        told = await self._engine.run("container", "inspect", "--format", _INSPECT, self._name, check=False)
        if not self._keep:
            await self._engine.run("rm", "--force", self._name, check=False)
        if told.code:
            return Exit(code if code >= 0 else 128 - code)
        _, out_of_memory, inner, started, *_ = told.output.split()
        if started.startswith(_NEVER):
            return _NOT_STARTED
        killed = out_of_memory == "true" or self._was_killed(int(inner))
        return Exit(int(inner), "OOMKilled" if killed and int(inner) else "")

    def _was_killed(self, code: int) -> bool:
        """Return whether it was killed and not by us: for its memory, which not every engine and kernel tells."""
        return code == _KILLED and self._limited and not self._stopped

    async def stop(self, grace_seconds: float) -> None:
        """Ask it to end; the engine ends it when it has not by then."""
        self._stopped = True
        await self._engine.run("stop", "--time", str(round(grace_seconds)), self._name, check=False)

    async def is_ready(self, probe: Tree) -> bool:
        """Try a readiness probe inside the container; one that cannot be tried counts as passed."""
        command = trees.get(probe, "exec", "command")
        if command:
            return (await self._engine.run("exec", self._name, *command, check=False)).code == 0
        kind = next((kind for kind in ("tcpSocket", "httpGet", "grpc") if kind in probe), "")
        port = trees.get(probe, kind, "port")
        if not isinstance(port, int):
            return True
        tables = await self._engine.run("exec", self._name, "cat", "/proc/net/tcp", "/proc/net/tcp6", check=False)
        return options.listens(tables.output, port)


def _some_network(prefix: int) -> IPv4Network:
    """Return a network of this size that is likely to be free; the engine says if it is not."""
    count = 1 << (prefix - NETWORKS.prefixlen)
    chosen = random.randrange(count)  # noqa: S311 no secret
    return ipaddress.IPv4Network((int(NETWORKS.network_address) + (chosen << (32 - prefix)), prefix))
