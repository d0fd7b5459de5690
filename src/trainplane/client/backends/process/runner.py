"""Containers as processes: a session of its own for each, with this machine's files, memory and processors.

What a container would keep apart is kept apart as far as processes can be: names and ports (`addresses`), working and
temporary folders, processors by affinity, memory by watching, mounts by replacing their paths in variables and
arguments. Images and users have no meaning here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.quantity import Quantity
from trainplane.client.backends.local import machine, processes
from trainplane.client.backends.local.events import ignored
from trainplane.client.backends.local.folder import is_own
from trainplane.client.backends.local.runner import Exit
from trainplane.client.backends.process import ranks
from trainplane.client.backends.process.addresses import LOOPBACK, Addresses
from trainplane.client.errors import EngineError, InvalidError
from trainplane.lifecycle.events import EventContent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trainplane.api.podindex import PodIndex
    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.folder import JobFolder
    from trainplane.client.backends.local.pods import LocalJobSet
    from trainplane.client.backends.local.runner import Launch
    from trainplane.client.backends.local.volumes import Mount

MEMORY_SECONDS: Final = 0.25
"""Between two looks at the memory of a container that has a limit."""
_STOP_SECONDS: Final = 0.05
_SIGNALLED: Final = 128
_SSHD: Final = "sshd"
FEWER: Final = "FewerProcesses"
"""The reason of the event that a node runs fewer processes than it asks for processors."""
_FRAMEWORKS: Final = ("PET_", "JAX_", "DMLC_", "OMPI_", "PRTE_", "PMIX_", "PADDLE_", "TORCHELASTIC_", "TRAINPLANE_")
_RANKS: Final = frozenset(
    {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG"}
)
"""Variables of a training that must not come from the one that this process itself may be part of."""
_TERMINAL: Final = frozenset({"FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "MPLBACKEND", "JPY_PARENT_PID"})
"""Variables by which a notebook's kernel tells what it shows: lines of a job go to a file."""
_UNBOUND: Final = {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}
"""All ranks are on this machine, more of them maybe than it has cores: OpenMPI 4 and 5 must not bind them to cores."""
_DATA: Final = {names.ENV_DATASET_PATH: names.PATH_DATASET, names.ENV_MODEL_PATH: names.PATH_MODEL}


class ProcessRunner:
    """Starts the containers of one job as processes."""

    def __init__(self, folder: JobFolder, settings: Tree) -> None:
        """Take the job's folder and settings: which interpreter, and where temporary files and packages go."""
        self._folder = folder
        self._settings = settings
        self._python = settings["python"]
        self._bin = folder.work / "bin"
        self._plan: LocalJobSet | None = None
        self._addresses = Addresses(frozenset(), folder.name)

    def judge(self, plan: LocalJobSet) -> Sequence[EventContent]:
        """Return what has no effect on processes; refuse what cannot be had."""
        told: dict[str, EventContent] = {}
        for job, container in plan.containers:
            _must_have_command(job.name, container)
            told.update(_without_effect(container))
            told.update(self._fewer_ranks(container))
        if image := trees.get(self._folder.read("trainjob"), "spec", "trainer", "image"):
            told["image"] = ignored(f"image {image}", "processes have none: the interpreter's own packages are used")
        machine.must_have_gpus(plan)
        if any(trees.get(job.template, "spec", "securityContext") for job in plan.jobs):
            told["securityContext"] = ignored("securityContext", "processes run as you")
        return list(told.values())

    def _fewer_ranks(self, container: Tree) -> dict[str, EventContent]:
        wanted = trees.get(container, "env", ("name", names.TORCH_NPROC_PER_NODE), "value")
        there = ranks.processors()
        if not self._counts_ranks or not ranks.beyond(wanted, there):
            return {}
        told = EventContent(
            "Normal",
            FEWER,
            f"each node runs {there} processes, one for each processor of this machine, and not one for each of the "
            f"{wanted} that it asks for: say how many with NumProcPerNode",
        )
        return {names.TORCH_NPROC_PER_NODE: told}

    @property
    def _counts_ranks(self) -> bool:
        return ranks.are_counted(self._folder.read("trainjob") or {}, self._folder.read("runtime") or {})

    async def prepare(self, plan: LocalJobSet) -> None:
        """Find ports for the pods, and lay out what they share."""
        self._plan = plan
        self._addresses = Addresses.of(plan)
        self._make_scratch()
        self._bin.mkdir(exist_ok=True)
        python = shlex.quote(self._python)
        programs = {"python": python, "python3": python, "torchrun": f"{python} -m torch.distributed.run"}
        for name, program in programs.items():
            script = self._bin / name
            script.write_text(f'#!/bin/sh\nexec {program} "$@"\n')
            script.chmod(0o755)

    def address(self, place: PodIndex) -> str:  # noqa: ARG002 all pods have the same
        """Return the loopback address."""
        return LOOPBACK

    def translate(self, text: str) -> str:
        """Return a text of a file with addresses as they are here."""
        return self._addresses.translate_file(text)

    async def start(self, launch: Launch) -> RunningProcess:
        """Start a container as a process.

        Raises:
            EngineError: there is no such program.
        """
        if self._plan is None:
            raise EngineError("the runner was not prepared")
        number = self._plan.number(launch.place)
        home = self._folder.work / "pods" / launch.pod["metadata"]["name"] / "cwd"
        home.mkdir(parents=True, exist_ok=True)
        scratch = Path(self._settings["scratch"])
        variables = {
            **_inherited(os.environ),
            "GLOO_SOCKET_IFNAME": machine.loopback(),
            "NCCL_SOCKET_IFNAME": machine.loopback(),
            "TP_SOCKET_IFNAME": machine.loopback(),
            "PET_LOCAL_ADDR": LOOPBACK,
            **_UNBOUND,
            "HOSTNAME": launch.pod["spec"]["hostname"],
            "TMPDIR": tempfile.mkdtemp(dir=scratch, prefix=""),
            "TRAINPLANE_PACKAGES": self._settings["packages"] or str(scratch / "packages"),
            **_gpu_variables(machine.gpu_numbers(self._plan, launch.place, launch.container)),
            **{name: _relocated(path, launch.mounts) for name, path in _DATA.items()},
            **self._localised(self._addresses.variables(self._ranked(launch.variables)), launch.mounts),
            names.STATUS_FILE: str(self._folder.progress),
            processes.MARK: launch.identity,
        }
        variables["PATH"] = f"{self._bin}{os.pathsep}{variables.get('PATH', os.defpath)}"
        words = self._words(launch)
        program = shutil.which(words[0], path=variables["PATH"])
        if program is None:
            raise EngineError(
                f"{launch.container['name']} runs {words[0]!r}, which is not on this machine: install it, or "
                "use ContainerBackendConfig, which has the runtime's image"
            )
        process = await asyncio.create_subprocess_exec(
            program,
            *words[1:],
            env=variables,
            cwd=self._directory(launch, home),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_binding(launch.container, number),
        )
        limit = trees.get(launch.container, "resources", "limits", "memory")
        waits = _is_sshd(launch.command)
        bytes_allowed = Quantity.of(limit).value() if limit else 0
        moved = {
            port: to for (host, port), to in self._addresses.moved.items() if host == launch.pod["spec"]["hostname"]
        }
        return RunningProcess(process, launch.identity, bytes_allowed, moved, ready=waits)

    async def clean(self) -> None:
        """Remove temporary files. Packages lie elsewhere if the user wants to keep them."""
        self._remove_scratch()

    def end(self, records: Iterable[Tree]) -> None:
        """End processes that were recorded, and remove temporary files."""
        for record in records:
            processes.end_recorded(record["pid"], record["started"], record["mark"])
        self._remove_scratch()

    def _remove_scratch(self) -> None:
        scratch = Path(self._settings.get("scratch") or os.devnull)
        if is_own(scratch):
            shutil.rmtree(scratch, ignore_errors=True)

    def _make_scratch(self) -> None:
        """Have a folder for temporary files whose name nobody can know before, and into which nobody else can look.

        It does not lie in the job's folder: sockets have paths too, of 107 characters at most.
        """
        if not is_own(Path(self._settings.get("scratch") or os.devnull)):
            scratch = tempfile.mkdtemp(prefix="tp-", dir=self._settings["temporary"])
            self._settings = {**self._settings, "scratch": scratch}
            self._folder.write("settings", self._settings)
        packages = self._settings["packages"]
        if packages:
            Path(packages).mkdir(mode=0o700, exist_ok=True)
            if not is_own(Path(packages)):
                raise EngineError(f"{packages}, where packages are kept, is not yours alone: remove it")

    def _words(self, launch: Launch) -> list[str]:
        """Return the command line as it is here."""
        if _is_sshd(launch.command):
            # All ranks run on this machine, so mpirun starts them itself and nobody has to let it in.
            return [self._python, "-c", "import signal; signal.pause()"]
        words = [*launch.command, *launch.args]
        return [_relocated(self._addresses.translate(word), launch.mounts) for word in words]

    def _ranked(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        return ranks.bounded(variables, ranks.processors()) if self._counts_ranks else variables

    def _localised(self, variables: Mapping[str, str], mounts: Sequence[Mount]) -> dict[str, str]:
        return {name: _relocated(value, mounts) for name, value in variables.items()}

    def _directory(self, launch: Launch, home: Path) -> Path:
        wanted = launch.container.get("workingDir")
        if not wanted:
            return home
        path = Path(_relocated(wanted, launch.mounts))
        return path if path.is_dir() else home


class RunningProcess:
    """A container that runs as a process, with all that it starts."""

    def __init__(
        self, process: asyncio.subprocess.Process, mark: str, limit: int, moved: Mapping[int, int], *, ready: bool
    ) -> None:
        """Watch a process that was just started: its memory up to `limit` bytes, its ports where they were moved to."""
        self._process = process
        self._mark = mark
        self._moved = moved
        self._always_ready = ready
        self._out_of_memory = False
        self._guard = asyncio.ensure_future(self._watch_memory(limit)) if limit else None
        self._started = processes.started_at(process.pid)

    @property
    def output(self) -> asyncio.StreamReader:
        """What it prints."""
        if self._process.stdout is None:
            raise EngineError("the process has no output")
        return self._process.stdout

    @property
    def record(self) -> Tree:
        """What is needed to end it when the supervisor cannot."""
        return {"pid": self._process.pid, "started": self._started, "mark": self._mark}

    async def wait(self) -> Exit:
        """Return how it ended; what it left running is ended, as the end of a container does."""
        code = await self._ended()
        if self._guard:
            self._guard.cancel()
        await self._end_rest()
        if self._out_of_memory:
            return Exit(_SIGNALLED + signal.SIGKILL, "OOMKilled")
        return Exit(code if code >= 0 else _SIGNALLED - code)

    async def stop(self, grace_seconds: float) -> None:
        """Ask its first process to end, as in a container; end all when it has not by then."""
        if self._process.returncode is not None:
            return
        if grace_seconds > 0:
            processes.tell([self._process.pid], signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended(), grace_seconds)
                return
        processes.tell(self._members(), signal.SIGKILL)

    async def is_ready(self, probe: Tree) -> bool:
        """Try a readiness probe from here; one that cannot be tried counts as passed."""
        port = trees.get(probe, "tcpSocket", "port") or trees.get(probe, "httpGet", "port")
        if self._always_ready or not isinstance(port, int):
            return True
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, self._moved.get(port, port))
        except OSError:
            return False
        writer.close()
        return True

    async def _ended(self) -> int:
        """Return the code of the first process. Not `Process.wait`, which waits for whoever has its output open too."""
        while self._process.returncode is None:  # noqa: ASYNC110 as above
            await asyncio.sleep(_STOP_SECONDS)
        return self._process.returncode

    def _members(self) -> set[int]:
        return processes.members(self._process.pid, self._mark)

    async def _end_rest(self) -> None:
        while left := self._members() - {self._process.pid}:
            processes.tell(left, signal.SIGKILL)
            await asyncio.sleep(_STOP_SECONDS)

    async def _watch_memory(self, limit: int) -> None:
        while True:
            await asyncio.sleep(MEMORY_SECONDS)
            there = self._members()
            if processes.memory(there) > limit:
                self._out_of_memory = True
                processes.tell(there, signal.SIGKILL)
                return


def _must_have_command(job: str, container: Tree) -> None:
    if container.get("command"):
        return
    image = container.get("image") or "no image"
    raise InvalidError(
        f"spec.runtimeRef: container {container['name']} of the runtime's job {job} runs what its image ({image}) "
        "says, and processes have no images: give a trainer with a function or a command, or use ContainerBackendConfig"
    )


def _without_effect(container: Tree) -> dict[str, EventContent]:
    told = {}
    if container.get("securityContext"):
        told["securityContext"] = ignored("securityContext", "processes run as you")
    if _is_sshd(container.get("command") or ()):
        told["sshd"] = ignored("sshd", "all ranks run on this machine, and mpirun starts them without it")
    if trees.get(container, "resources", "limits", "cpu") and not machine.processors():
        told["cpu"] = ignored("the limit of processors", f"{sys.platform} cannot bind processes to processors")
    for mount in container.get("volumeMounts") or ():
        path = mount["mountPath"]
        told[path] = ignored(f"mount {path}", "a folder of the job stands for it, in variables and arguments")
    return told


def _is_sshd(command: Sequence[str]) -> bool:
    return bool(command) and Path(command[0]).name == _SSHD


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    left = _RANKS | _TERMINAL
    return {name: value for name, value in environment.items() if name not in left and not name.startswith(_FRAMEWORKS)}


def _relocated(text: str, mounts: Sequence[Mount]) -> str:
    """Return a text with paths of mounts replaced by the folders that stand for them."""
    for mount in sorted(mounts, key=lambda mount: -len(mount.path)):
        if mount.path in text and str(mount.source) != mount.path and not mount.path.startswith("/dev"):
            source = str(mount.source).replace("\\", r"\\")
            text = re.sub(rf"(?<![\w/.+-]){re.escape(mount.path)}(?![\w.-])", source, text)
    return text


def _gpu_variables(numbers: Sequence[int]) -> dict[str, str]:
    """Return what tells a process which GPUs it may use; nothing where it asks for none."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, numbers))} if numbers else {}


def _binding(container: Tree, number: int) -> Callable[[], None] | None:
    """Return what binds a process to as many processors as its limit says, begun ones counted whole.

    It is called in the child before the program starts, which so never sees more; it is one system call.
    """
    limit = trees.get(container, "resources", "limits", "cpu")
    there = machine.processors()
    if limit is None or not there:
        return None
    wanted = max(1, Quantity.of(limit).value())
    return partial(os.sched_setaffinity, 0, machine.share(there, wanted, number * wanted))
