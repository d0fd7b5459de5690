"""The program in processes of its own, which can be killed: forked from one that has its modules loaded."""

from __future__ import annotations

import multiprocessing
import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.initializers.console import Console
from trainplane.initializers.outputs.program import run as send
from trainplane.initializers.program import run
from trainplane.initializers.secrets import Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import ForkServerProcess

LOADED = [
    "tests.unit.initializers.child",
    *(
        f"trainplane.initializers.schemes.{name}"
        for name in ("hub", "commits", "s3", "gcs", "azure", "https", "folder")
    ),
]


def program(what: str, env: dict[str, str], folder: str, said: str) -> None:
    """Run the step; leave what it said, its exit code and its growth in memory in files."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log = Path(f"{said}.log")
    log.write_text("")
    with Path(f"{said}.out").open("w") as out, Path(f"{said}.err").open("w") as err:
        console = Console(Secrets(env), out, err, log)
        if what == "output":
            code = send(env, Path(folder), console, now="KUBEFLOW_TRAINER_SERVER_URL" not in env)
        else:
            code = run(what, env, Path(folder), console)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    Path(f"{said}.code").write_text(f"{code} {grown}")


@contextmanager
def started(what: str, env: dict[str, str], folder: Path, said: Path) -> Iterator[ForkServerProcess]:
    """Start the step, for an output the one that sends what is there; kill it if it still runs at the end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    process = context.Process(target=program, args=(what, env, str(folder), str(said)))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def ended(said: Path) -> tuple[int, int]:
    """Return exit code and growth in KiB of a step that ended by itself."""
    code, grown = Path(f"{said}.code").read_text().split()
    return int(code), int(grown)
