"""The same files over the same line with several tools, in turns; what each moved in a second.

A tool is a process from its start to its end, as in a pod. Ours has its bytes on the disk when it ends; the others
leave that to the kernel, which is their advantage here.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from lab.engines import manifests
from tests.unit.initializers.versity import KEY, SECRET, Store
from trainplane.initializers.paths import OURS
from trainplane.initializers.schemes.roles import Keys, sign

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT: Final = Path(__file__).parents[3]
TOOLS: Final = ROOT / "build/speed/bin"
"""The venv of requirements/speed.txt."""
MODEL, OUTPUT = "speed/model", "speed/output"
"""Prefixes in the bucket, of what comes and of what goes."""

Command: TypeAlias = "tuple[list[str], dict[str, str]]"
"""Arguments, and variables beside those of this process."""


@dataclass
class Contest:
    """A set of files on an S3 server, and where it is brought to; or one here, and where it is sent to."""

    store: Store
    source: Path
    """The files, as they lie on a disk here."""
    target: Path
    """Where they go: a folder here, or one of the server's."""
    seconds: dict[str, list[float]] = field(default_factory=dict)
    grown_mib: float = 0.0
    """How much our memory grew at most."""

    @property
    def names(self) -> list[str]:
        """The files."""
        return sorted(path.name for path in self.source.iterdir() if path.is_file())

    @property
    def megabytes(self) -> float:
        """All of them."""
        return sum((self.source / name).stat().st_size for name in self.names) / 1e6

    def run(self, tools: Mapping[str, Callable[[Contest], Command]], rounds: int) -> None:
        """Let the tools run in turns; the disk is quiet when one begins."""
        for _ in range(rounds):
            for name, tool in tools.items():
                for leftover in (self.target, self.source / OURS):
                    shutil.rmtree(leftover, ignore_errors=True)
                self.target.mkdir(parents=True)
                arguments, env = tool(self)
                os.sync()
                start = time.monotonic()
                ended = subprocess.run(
                    arguments, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, check=False
                )
                self.seconds.setdefault(name, []).append(time.monotonic() - start)
                assert ended.returncode == 0, f"{name}: {ended.stdout[-2000:]} {ended.stderr[-2000:]}"
                assert SECRET not in ended.stdout + ended.stderr
                if name == "ours":
                    self.grown_mib = max(self.grown_mib, int(ended.stdout.split()[-1]) / 1024)

    def rate(self, name: str) -> float:
        """Return the megabytes in a second of a tool's median run."""
        return self.megabytes / statistics.median(self.seconds[name])

    def arrived(self) -> bool:
        """Return whether the target has the files, byte by byte."""
        same, _, _ = filecmp.cmpfiles(self.source, self.target, self.names, shallow=False)
        return sorted(same) == self.names

    def signed(self, name: str) -> str:
        """Return a URL of one of the files that needs no other credentials."""
        url = f"{self.store.endpoint}/bucket/{MODEL}/{name}"
        return sign(url, {}, Keys(KEY, SECRET), ("us-east-1", "s3"), datetime.now(UTC), payload="UNSIGNED-PAYLOAD")


def ours(contest: Contest) -> Command:
    """Return what a dataset's step runs."""
    arguments = [sys.executable, "-m", "tests.initializers.speed.measured", "dataset", str(contest.target)]
    return arguments, {**contest.store.env, "STORAGE_URI": f"s3://bucket/{MODEL}"}


def ours_out(contest: Contest) -> Command:
    """Return what sends an output."""
    arguments = [sys.executable, "-m", "tests.initializers.speed.measured", "output", str(contest.source)]
    return arguments, {**contest.store.env, "OUTPUT_URI": f"s3://bucket/{OUTPUT}"}


def aws(contest: Contest) -> Command:
    """Return Amazon's tool."""
    return _aws(contest, f"s3://bucket/{MODEL}", str(contest.target))


def aws_out(contest: Contest) -> Command:
    """Return Amazon's tool, the other way."""
    return _aws(
        contest, str(contest.source), f"s3://bucket/{contest.target.relative_to(contest.store.root / 'bucket')}"
    )


def _aws(contest: Contest, source: str, target: str) -> Command:
    arguments = [str(TOOLS / "aws"), "--endpoint-url", contest.store.endpoint, "s3", "cp", "--recursive", "--quiet"]
    env = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    return [*arguments, source, target], env


def reference(contest: Contest) -> Command:
    """Return the reference's own step, as it stands in its module; its target is a constant, so that is set."""
    code = (
        "import sys, pkg.initializers.utils.utils as utils; utils.DATASET_PATH = sys.argv[1]\n"
        "from pkg.initializers.dataset.__main__ import main; main()"
    )
    env = {**contest.store.env, "STORAGE_URI": f"s3://bucket/{MODEL}", "PYTHONPATH": str(manifests("trainer"))}
    return [str(TOOLS / "python"), "-c", code, str(contest.target)], env


def curl(contest: Contest) -> Command:
    """Return curl, file by file: one connection, no listing, no check, nothing to resume."""
    arguments = ["curl", "--silent", "--show-error", "--fail"]
    for name in contest.names:
        arguments += ["--output", str(contest.target / name), contest.signed(name)]
    return arguments, {}


def curl_out(contest: Contest) -> Command:
    """Return curl, the other way; it signs no bytes, so it need not read them twice."""
    arguments = ["curl", "--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3"]
    arguments += ["--user", f"{KEY}:{SECRET}", "--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]
    for name in contest.names:
        arguments += ["--upload-file", str(contest.source / name)]
        arguments += [f"{contest.store.endpoint}/bucket/{OUTPUT}/{name}"]
    return arguments, {}
