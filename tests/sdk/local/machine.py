"""What runs on this machine: to see that jobs leave nothing behind."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lab.images import IMAGES
from lab.images.containerd_root import write_archive
from lab.paths import cache_root
from trainplane.client.backends import supervision

RUN_OPTIONS = ("--ulimit", "nofile=10000:10000", "--ulimit", "nproc=30000:30000")
"""What containers need where root may not raise limits, as in the lab."""
_RUNTIME = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "overlay")


def processes_with(text: str) -> list[int]:
    """Return the processes that have a text in their variables or their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def supervisors_of(folder: Path) -> list[int]:
    """Return the process that waits for a job's supervisor, and the supervisor."""
    parents: dict[int, int] = {}
    for pid in processes_with(f"\0{folder}\0"):
        with contextlib.suppress(OSError):  # it has ended since
            if supervision.__name__.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                parents[pid] = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return sorted(parents, key=lambda pid: parents[pid] in parents)


def contents(folder: Path) -> list[bytes]:
    """Return what is in the files below a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def scratch_folders() -> list[Path]:
    """Return the temporary folders of jobs."""
    return list(Path(tempfile.gettempdir()).glob("tp-*"))


@dataclass(frozen=True)
class Podman:
    """A store of its own, that nobody else sees."""

    folder: Path
    options: tuple[str, ...]

    @classmethod
    def below(cls, folder: Path, images: Path) -> Podman:
        """Make a store in a folder; images are read from another one."""
        places = ("--root", str(folder / "root"), "--runroot", str(folder / "run"))
        networks = ("--network-config-dir", str(folder / "networks"))
        return cls(folder, (*places, *networks, *_RUNTIME, "--storage-opt", f"additionalimagestore={images}"))

    def call(self, *words: str) -> list[str]:
        """Run a command and return the lines that it prints."""
        done = subprocess.run(["podman", *self.options, *words], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def remove(self) -> None:
        """Remove the store."""
        unmount(self.folder / "root")
        shutil.rmtree(self.folder)


def image_store(*names: str) -> Path:
    """Return a podman store with images of the lab, made once for all runs: torch takes half a minute."""
    key = "-".join(IMAGES[name].key() for name in names)
    final = cache_root() / "podman" / key
    if final.exists():
        return final
    partial = final.with_name(f"{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as run:
        for name in names:
            command = ["podman", "--root", str(partial), "--runroot", run, *_RUNTIME, "load", "--quiet"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as loading:
                assert loading.stdin
                write_archive(IMAGES[name], loading.stdin)
                loading.stdin.close()
            assert loading.returncode == 0
        unmount(partial)
    partial.rename(final)
    return final


def unmount(store: Path) -> None:
    """Take away the mount that podman leaves on a store's layers."""
    subprocess.run(["umount", str(store / "overlay")], capture_output=True, check=False)
