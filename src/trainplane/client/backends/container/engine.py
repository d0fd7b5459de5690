"""Docker or podman by their command line, which is the same for all that is needed here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.client.errors import EngineError, InvalidError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trainplane.client.types.backends import ContainerBackendConfig

ENGINES: Final = ("docker", "podman")
_SECONDS: Final = 20
"""How long an engine may take to say that it is there."""


@dataclass(frozen=True)
class Engine:
    """One of the two, and how it is called."""

    name: str
    command: tuple[str, ...]
    """Its program and the options that stand in every command."""

    @property
    def is_podman(self) -> bool:
        """Whether it is podman."""
        return self.name == "podman"

    def line(self, *words: str) -> list[str]:
        """Return a whole command line."""
        return [*self.command, *words]

    def call(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for it.

        Raises:
            EngineError: it failed, and `check` was asked for.
        """
        done = subprocess.run(self.line(*words), capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise EngineError(f"{self.name} {words[0]}: {last_line(done.stderr)}")
        return done

    async def run(
        self,
        *words: str,
        check: bool = True,
        whole: bool = False,
        environment: Mapping[str, str] | None = None,
        files: Sequence[int] = (),
    ) -> Done:
        """Run a command, with variables and open files in addition to those of this process.

        If the caller is cancelled, the command is ended first, or with `whole` seen to its end: one that is killed in
        the midst of making something leaves what nobody can name.

        Raises:
            EngineError: it failed, and `check` was asked for.
        """
        running = asyncio.ensure_future(self._communicate(words, environment or {}, files))
        try:
            done = await asyncio.shield(running)
        except asyncio.CancelledError:
            if not whole:
                running.cancel()
            await asyncio.wait({running})
            raise
        if check and done.code:
            raise EngineError(f"{self.name} {words[0]}: {last_line(done.error)}")
        return done

    async def _communicate(self, words: Sequence[str], environment: Mapping[str, str], files: Sequence[int]) -> Done:
        process = await asyncio.create_subprocess_exec(
            *self.line(*words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **environment},
            pass_fds=files,
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
            raise
        return Done(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))


@dataclass(frozen=True)
class Done:
    """How a command of the engine ended."""

    code: int
    output: str
    error: str


@contextlib.contextmanager
def unnamed_file(content: bytes) -> Iterator[int]:
    """Hold an open file that no folder has and no other user can open; `/dev/fd/NUMBER` is its path for a child."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("trainplane", 0)
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    try:
        with os.fdopen(os.dup(number), "wb") as file:
            file.write(content)
        os.lseek(number, 0, os.SEEK_SET)
        yield number
    finally:
        os.close(number)


def last_line(text: str) -> str:
    """Return what an engine said last, which is what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it failed and said nothing"


def find_engine(config: ContainerBackendConfig) -> Engine:
    """Return the engine that a configuration names, else the first that answers, docker before podman.

    Raises:
        InvalidError: it names another engine.
        UnreachableError: none answers; the message says what each of them said.
    """
    wanted = config.container_runtime
    if wanted is not None and wanted not in ENGINES:
        raise InvalidError(f"container_runtime must be docker or podman, and is {wanted!r}")
    said = []
    for name in (wanted,) if wanted else ENGINES:
        engine = Engine(name, (name, *_host(name, config.container_host), *config.engine_options))
        problem = _ask(engine)
        if problem is None:
            return engine
        said.append(f"{name}: {problem}")
    raise UnreachableError(
        f"no container engine answers ({'; '.join(said)}): start docker or podman, or use LocalProcessBackendConfig"
    )


def engine_of(settings: Mapping[str, object]) -> Engine:
    """Return the engine that a job was started with."""
    command: Sequence[str] = settings["engine"]  # type: ignore[assignment]
    return Engine(str(settings["engine_name"]), tuple(command))


def _host(name: str, host: str | None) -> Iterable[str]:
    if not host:
        return ()
    return ("--host", host) if name == "docker" else ("--remote", "--url", host)


def _ask(engine: Engine) -> str | None:
    """Return what is wrong with an engine; None if it answers."""
    try:
        done = subprocess.run(
            engine.line("info", "--format", "{{json .}}"), capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except FileNotFoundError:
        return "not installed"
    except subprocess.TimeoutExpired:
        return f"no answer in {_SECONDS} s"
    # docker's client prints what it knows of itself, and the error, and ends well in some versions.
    if done.returncode or '"ServerErrors"' in done.stdout:
        return last_line(done.stderr or done.stdout)
    return None
