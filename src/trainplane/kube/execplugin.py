"""Exec credential plugins: a program of the cloud provider that prints who we are.

Speaks `client.authentication.k8s.io/v1` and `v1beta1`. The program gets an ExecCredential in the environment variable
`KUBERNETES_EXEC_INFO` and prints one with a status on stdout.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from trainplane.kube.clock import Clock, SystemClock
from trainplane.kube.codec import MALFORMED
from trainplane.kube.credentials import Credential
from trainplane.kube.errors import CredentialError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

InteractiveMode = Literal["Never", "IfAvailable", "Always"]

EXPIRY_MARGIN_SECONDS = 15.0
"""How long before its expiry a plugin's credential is replaced, so that no request carries it past its end."""

_TAIL_LINES = 20


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


def _has_terminal() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A plugin as the kubeconfig describes it; `command` is absolute or a name to find on PATH."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to our own environment."""
    install_hint: str = ""
    """The kubeconfig's advice for when the command is not installed."""
    interactive_mode: InteractiveMode = "IfAvailable"
    cluster: Mapping[str, Any] | None = None
    """The cluster as told to the plugin, where the kubeconfig says `provideClusterInfo`."""
    timeout_seconds: float = 300.0
    """Seconds until a plugin is taken for hung; 300 leave a person time to log in with a browser."""
    has_terminal: Callable[[], bool] = _has_terminal
    clock: Clock = field(default_factory=SystemClock)

    async def run(self) -> tuple[Credential, datetime | None]:
        """Run the plugin; return its credential and when it expires. Raises CredentialError naming the command."""
        interactive = self._interactive()
        path = shutil.which(self.command)
        if path is None:
            hint = f" {self.install_hint.strip()}" if self.install_hint else " Install it or put it on PATH."
            raise CredentialError(f"exec plugin {self.command!r} of the kubeconfig is not installed.{hint}")
        process = await self._start(path, interactive=interactive)
        errors: deque[str] = deque(maxlen=_TAIL_LINES)
        try:
            async with self.clock.timeout(self.timeout_seconds):
                output, _, code = await asyncio.gather(
                    process.stdout.read() if process.stdout else _nothing(),
                    _pass_on(process.stderr, errors),
                    process.wait(),
                )
        except TimeoutError as error:
            text = f"exec plugin {self.command!r} did not end within {self.timeout_seconds:.0f} s"
            raise CredentialError(text) from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if code != 0:
            said = "".join(errors).strip()
            raise CredentialError(f"exec plugin {self.command!r} failed with code {code}: {said or 'it said nothing'}")
        return self._read(output)

    def _interactive(self) -> bool:
        if self.interactive_mode == "Never":
            return False
        available = self.has_terminal()
        if self.interactive_mode == "Always" and not available:
            text = f"exec plugin {self.command!r} has interactiveMode Always, but there is no terminal on stdin"
            raise CredentialError(text)
        return available

    async def _start(self, path: str, *, interactive: bool) -> asyncio.subprocess.Process:
        spec: dict[str, Any] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **self.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        try:
            return await asyncio.create_subprocess_exec(
                path,
                *self.args,
                env=environment,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise CredentialError(f"exec plugin {self.command!r} cannot be started: {error}") from error

    def _read(self, output: bytes) -> tuple[Credential, datetime | None]:
        where = f"exec plugin {self.command!r}"
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except MALFORMED as error:
            raise CredentialError(f"{where} printed no ExecCredential: {error}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self.api_version:
            got = f"{answer.api_version or 'no apiVersion'} {answer.kind or 'no kind'}"
            raise CredentialError(f"{where} answered with {got}, the kubeconfig promises {self.api_version}")
        status = answer.status or _Status()
        if (status.client_certificate_data is None) != (status.client_key_data is None):
            raise CredentialError(f"{where} gave a certificate without its key, or a key without its certificate")
        certificate = None
        if status.client_certificate_data is not None and status.client_key_data is not None:
            certificate = (status.client_certificate_data, status.client_key_data)
        if not status.token and certificate is None:
            raise CredentialError(f"{where} gave neither status.token nor status.clientCertificateData")
        expires = status.expiration_timestamp
        if expires is not None and expires.tzinfo is None:
            expires = expires.replace(tzinfo=UTC)
        return Credential(f"Bearer {status.token}" if status.token else None, certificate), expires


class ExecCredentials:
    """The answer of an exec plugin, kept until shortly before it expires or until a 401.

    Concurrent requests share one run of the plugin. A 401 to an older answer than the present one does not run it
    again, so a burst of refused requests costs one run.
    """

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        self._plugin = plugin
        self._clock = clock
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._running = asyncio.Lock()

    async def current(self) -> Credential:
        """Return the plugin's answer, running it if the last one is no longer good."""
        if self._credential is not None and self._is_fresh():
            return self._credential
        async with self._running:
            if self._credential is None or not self._is_fresh():
                self._credential, self._expires = await self._plugin.run()
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Forget the answer if it is the refused one."""
        if credential == self._credential:
            self._credential = None
        return True

    def _is_fresh(self) -> bool:
        if self._expires is None:
            return True
        return (self._expires - self._clock.now()).total_seconds() > EXPIRY_MARGIN_SECONDS


async def _nothing() -> bytes:
    return b""


async def _pass_on(stream: asyncio.StreamReader | None, tail: deque[str]) -> None:
    """Show a plugin's stderr as it comes (a login code, say), through sys.stderr so that notebooks show it too."""
    if stream is None:
        return
    while chunk := await stream.read(4096):
        text = chunk.decode("utf-8", "replace")
        tail.append(text)
        sys.stderr.write(text)
        sys.stderr.flush()
