"""Emulators of Google's and Azure's stores, as far as they can be had: engines on demand (FULL=1)."""

from __future__ import annotations

import base64
import hmac
import json
import os
import socket
import subprocess
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from lab.engines import binary
from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parents[2]
AZURITE: Final = ROOT / "build/azurite/node_modules/azurite/dist/src/blob/main.js"
ACCOUNT: Final = "account"
ACCOUNT_KEY: Final = base64.b64encode(b"key of a test's account, no secret of anybody").decode()
_API: Final = "2021-08-06"


@dataclass(frozen=True)
class Emulator:
    """A running server with a bucket, or container, of the name `bucket`."""

    endpoint: str

    @property
    def azure(self) -> dict[str, str]:
        """What a step needs to read and write it as Azure's."""
        return {
            "ENDPOINT": f"{self.endpoint}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        }

    @property
    def google(self) -> dict[str, str]:
        """What a step needs to read it as Google's."""
        return {"ENDPOINT": self.endpoint, "ANONYMOUS": "true"}


@contextmanager
def google(root: Path, files: Mapping[str, bytes]) -> Iterator[Emulator]:
    """Serve objects with fake-gcs-server; they are put there in its own way, which no client of XML knows."""
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    address = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", endpoint]
    place = ["-public-host", f"127.0.0.1:{port}", "-backend", "filesystem", "-filesystem-root", str(root)]
    with _running([binary("fake-gcs-server"), *address, *place], port):
        _ask("POST", f"{endpoint}/storage/v1/b", json.dumps({"name": "bucket"}).encode())
        for name, content in files.items():
            query = f"uploadType=media&name={quote(name, safe='')}"
            _ask("POST", f"{endpoint}/upload/storage/v1/b/bucket/o?{query}", content)
        yield Emulator(endpoint)


@contextmanager
def azure(root: Path) -> Iterator[Emulator]:
    """Serve a container with Azurite."""
    port = _free_port()
    options = ["--location", str(root), "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent"]
    command = ["node", str(AZURITE), *options, "--skipApiVersionCheck", "--disableTelemetry"]
    with _running(command, port, AZURITE_ACCOUNTS=f"{ACCOUNT}:{ACCOUNT_KEY}"):
        endpoint = f"http://127.0.0.1:{port}"
        when = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        text = f"PUT{chr(10) * 12}x-ms-date:{when}\nx-ms-version:{_API}\n/{ACCOUNT}/{ACCOUNT}/bucket\nrestype:container"
        signature = base64.b64encode(hmac.digest(base64.b64decode(ACCOUNT_KEY), text.encode(), "sha256")).decode()
        headers = {"x-ms-date": when, "x-ms-version": _API, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
        _ask("PUT", f"{endpoint}/{ACCOUNT}/bucket?restype=container", None, **headers)
        yield Emulator(endpoint)


@contextmanager
def _running(command: list[str], port: int, **env: str) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env={**os.environ, **env}, stdout=quiet, stderr=quiet)
    try:

        def listens() -> bool:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
                return False
            return True

        wait_for(command[0], listens, seconds=60)
        yield
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ask(method: str, url: str, body: bytes | None, **headers: str) -> None:
    sent = {"Content-Type": "application/json", **headers} if body is not None else headers
    with urllib.request.urlopen(urllib.request.Request(url, body, sent, method=method)) as answer:  # noqa: S310 http, here
        answer.read()
