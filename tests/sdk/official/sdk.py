"""An SDK of others as a test sees it: an interpreter of its own that runs cells of user code.

    sdk.run("client.get_job(name).status", name="bert")

A cell of the official SDK has the names of `kubeflow.trainer` and its options, a `client` in the user's namespace, and
what the test gives.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lab.paths import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

DRIVER = Path(__file__).with_name("driver.py")
PATIENCE = 240.0
"""Seconds that a cell may take on a busy machine of two cores."""


@dataclass(frozen=True)
class Package:
    """An SDK: where its venv lies, what cells import of it, and how they make a client."""

    environment: Path
    prelude: str
    client: str

    @property
    def python(self) -> Path:
        """The venv's interpreter."""
        return self.environment / "bin/python"


OFFICIAL = Package(
    REPOSITORY / "build/official-sdk",
    """
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import *
from kubeflow.trainer.options import *
""",
    "client = TrainerClient(KubernetesBackendConfig(namespace=NAMESPACE))\n",
)
PYTHON = OFFICIAL.python


class SdkError(AssertionError):
    """A cell raised what the test did not ask for."""


@dataclass(frozen=True)
class Raised:
    """What a cell raised."""

    type: str
    message: str
    cause: str
    """What the API server answered; the SDK's own message leaves it out."""
    trace: str


@dataclass(frozen=True)
class Outcome:
    """What came of a cell."""

    value: Any
    error: Raised | None
    printed: str
    warnings: list[str]
    requests: list[str]
    """`METHOD /path` of each request, of a cell that ran alone."""


class Sdk:
    """A running interpreter of an SDK, for one kubeconfig."""

    def __init__(self, kubeconfig: Path, namespace: str, package: Package = OFFICIAL) -> None:
        if not package.python.exists():
            stamp = package.environment.relative_to(REPOSITORY) / "stamp"
            raise SdkError(f"the SDK of {package.environment.name} is not installed: make {stamp}")
        self.namespace = namespace
        self._client = package.client
        self._numbers = count()
        self._waiting: dict[int, Future[Outcome]] = {}
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            [str(package.python), str(DRIVER), package.prelude],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def begin(self, cell: str, *, bare: bool = False, namespace: str = "", **given: Any) -> Future[Outcome]:
        """Start a cell; a bare one makes its own client."""
        number = next(self._numbers)
        future: Future[Outcome] = Future()
        self._waiting[number] = future
        given["NAMESPACE"] = namespace or self.namespace
        request = {"id": number, "cell": cell if bare else self._client + cell, "given": given}
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return future

    def outcome(self, cell: str, *, bare: bool = False, namespace: str = "", **given: Any) -> Outcome:
        """Run a cell to its end, however that is."""
        return self.begin(cell, bare=bare, namespace=namespace, **given).result(PATIENCE)

    def run(self, cell: str, *, bare: bool = False, namespace: str = "", **given: Any) -> Any:
        """Run a cell and return what its last line gives; `SdkError` if it raised."""
        outcome = self.outcome(cell, bare=bare, namespace=namespace, **given)
        if outcome.error is not None:
            raise SdkError(f"{outcome.error.trace}\n{outcome.error.cause}")
        return outcome.value

    def raised(self, cell: str, *, namespace: str = "", **given: Any) -> Raised:
        """Run a cell that must raise and return what it raised."""
        outcome = self.outcome(cell, namespace=namespace, **given)
        if outcome.error is None:
            raise SdkError(f"nothing was raised; the cell gave {outcome.value!r}")
        return outcome.error

    def _read(self) -> None:
        for reply in self._replies():
            number, error = reply.pop("id"), reply.pop("error")
            outcome = Outcome(error=None if error is None else Raised(**error), **reply)
            self._waiting.pop(number).set_result(outcome)
        for future in self._waiting.values():
            future.set_exception(SdkError("the SDK's interpreter ended"))

    def _replies(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                yield json.loads(line)
        except ValueError:
            return  # closed by us
