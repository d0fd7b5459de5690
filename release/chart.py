"""The Helm chart as an archive, the same from the same commit."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from deploy import package
from release.errors import MissingToolError, ReleaseError

if TYPE_CHECKING:
    from release.order import Order

CHART = Path("charts/trainplane")


def build(order: Order) -> Path:
    """Package the chart, with JobSet's inside.

    Raises:
        MissingToolError: there is no chart, no helm, or no chart of JobSet.
        ReleaseError: the chart is of another version, or helm refuses it.
    """
    chart = order.tree / CHART
    if not chart.is_dir():
        raise MissingToolError(f"{CHART}: this commit has no chart")
    program = helm()
    facts: Any = yaml.safe_load((chart / "Chart.yaml").read_text())
    if str(facts["appVersion"]) != order.version:
        raise ReleaseError(f"{CHART}/Chart.yaml: appVersion is {facts['appVersion']}: set it to {order.version}")
    with tempfile.TemporaryDirectory() as folder:
        whole = package.assemble(chart, Path(folder) / chart.name, jobset())
        words = [program, "package", str(whole), "--destination", folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReleaseError(f"helm package ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
        (made,) = Path(folder).glob("*.tgz")
        return repack(made, order.output / made.name, order.epoch)


def helm() -> str:
    """Return the path of helm: the lab's, else the one on PATH.

    Raises:
        MissingToolError: there is neither.
    """
    from lab import engines  # noqa: PLC0415 the lab is no part of what is released, and need not be there
    from lab.errors import BuildError  # noqa: PLC0415 as above

    try:
        return engines.binary("helm")
    except (KeyError, BuildError):
        found = shutil.which("helm")
    if found is None:
        raise MissingToolError("helm: is neither an engine of the lab that is built nor on PATH: run `make engines`")
    return found


def jobset() -> Path:
    """Return the folder of JobSet's chart, which the lab has.

    Raises:
        MissingToolError: it has not.
    """
    from lab.errors import BuildError  # noqa: PLC0415 as above

    try:
        return package.jobset()
    except BuildError as error:
        raise MissingToolError(f"JobSet's chart: {error}") from error


def repack(archive: Path, target: Path, epoch: int) -> Path:
    """Write an archive anew, in order and with one time and owner: helm puts the time of day on each file."""
    with tarfile.open(archive) as given, target.open("wb") as file:
        compressed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=epoch)
        with compressed, tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as content:
            for member in sorted(given.getmembers(), key=lambda one: one.name):
                member.mtime, member.mode, member.uid, member.gid = epoch, 0o644, 0, 0
                member.uname = member.gname = ""
                member.pax_headers = {}
                content.addfile(member, given.extractfile(member))
    return target
