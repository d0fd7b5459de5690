"""What a node of the job runs first: unpack the code, install packages, hand over to the framework's launcher.

This file is the program behind `python3 -c` in the TrainJob. It runs in images that know nothing of trainplane, so it
needs Python 3.8 and the standard library, and no shell. Arguments: `node` or `rank`, the code's hash, and the code, or
`@` and the file that has it.

- `node` is the container's own process. It chooses the launcher by what the operator put into the environment.
- `rank` is a process that mpirun started, maybe in a pod that has nothing but sshd, so it brings the code along.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Any, Iterator, NoReturn  # noqa: UP035 as Python 3.8 has it

OPENMPI = ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile")
HYDRA = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")
HOSTFILE = "/etc/mpi/hostfile"
RANK = "import base64, sys, zlib; exec(zlib.decompress(base64.b64decode(sys.argv.pop(1))))"


def main() -> None:
    """Become the launcher, or the training process itself."""
    role, digest, *chunks = sys.argv[1:]
    if chunks[0].startswith("@"):
        chunks = in_chunks(Path(chunks[0][1:]).read_bytes())
    packed = zlib.decompress(base64.b64decode("".join(chunks)))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        plan = json.load(tar.extractfile("plan.json") or io.BytesIO())
    if role == "node" and "PET_NNODES" not in os.environ and is_mpi_launcher():
        launch([*mpirun(plan["env"]), sys.executable, "-c", RANK, packed_self(), "rank", digest, *chunks])
    home = find_home()
    folder = unpack(packed, home / digest.rpartition(":")[2][:16])
    cwd = folder / plan["cwd"] if plan["cwd"] else Path.cwd()
    path = [str(folder / root) for root in plan["path"]]
    if plan["packages"]:
        overlay = install(plan["packages"], plan["pip"], home, cwd)
        path.append(str(site_packages(overlay)))
        os.environ["PATH"] = os.pathsep.join([str(overlay / "bin"), os.environ.get("PATH", os.defpath)])
    sys.path[1:1] = path
    path += [str(folder / root) for name, root in plan["fallbacks"].items() if importlib.util.find_spec(name) is None]
    os.environ["PYTHONPATH"] = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    os.chdir(cwd)
    module = launcher() if role == "node" else None
    launch([sys.executable, *(["-m", module] if module else []), str(folder / plan["entry"]), *plan["args"]])


def launch(command: list[str]) -> NoReturn:
    """Become another program."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], command)  # noqa: S606 no shell is wanted


def launcher() -> str | None:
    """Return the module that starts this node's processes; None where the node is one process."""
    for variable, package, module in (
        ("PET_NNODES", "torch", "torch.distributed.run"),
        ("PADDLE_MASTER", "paddle", "paddle.distributed.launch"),
    ):
        if variable in os.environ:
            if importlib.util.find_spec(package) is None:
                raise failure(
                    f"the runtime starts {package}, which is not installed here: install it, or choose another runtime"
                )
            return module
    return None


def is_mpi_launcher() -> bool:
    """Return whether this is the pod of an MPI job that starts the others."""
    return any(name in os.environ for name in OPENMPI + HYDRA) or Path(HOSTFILE).exists()


def mpirun(variables: list[str]) -> list[str]:
    """Return the beginning of mpirun's command line. Hydra hands all variables on, OpenMPI those that it is told."""
    program = shutil.which("mpirun") or shutil.which("mpiexec")
    if program is None:
        raise failure("the runtime starts mpirun, which is not installed here: install it, or choose another runtime")
    if any(name in os.environ for name in HYDRA):
        return [program]
    hosts = [] if any(name in os.environ for name in OPENMPI) else ["--hostfile", HOSTFILE]
    return [program, *hosts, *(word for name in variables if name in os.environ for word in ("-x", name))]


def in_chunks(code: bytes) -> list[str]:
    """Return code as words of a command line, for ranks in pods without the file. Linux takes 128 KiB for one."""
    text = base64.b64encode(code).decode()
    return [text[start : start + 98304] for start in range(0, len(text), 98304)]


def packed_self() -> str:
    """Return this program as one word, for command lines that other programs copy."""
    words = getattr(sys, "orig_argv", None) or Path("/proc/self/cmdline").read_text().split("\0")
    return base64.b64encode(zlib.compress(words[words.index("-c") + 1].encode())).decode()


def find_home() -> Path:
    """Return a folder of our own that can be written."""
    owner = getattr(os, "getuid", int)()
    for parent in (tempfile.gettempdir, lambda: "/dev/shm", lambda: os.path.expanduser("~")):  # noqa: PTH111, S108 a list of last resorts
        with contextlib.suppress(OSError):
            home = Path(parent(), "trainplane-%d" % owner)  # noqa: UP031 short
            home.mkdir(mode=0o700, exist_ok=True)
            if home.is_symlink() or home.stat().st_uid != owner:
                home = Path(tempfile.mkdtemp(prefix="trainplane-"))
            with tempfile.TemporaryFile(dir=str(home)):
                return home
    raise failure("no folder of this container can be written: mount an emptyDir at /tmp")


def unpack(packed: bytes, folder: Path) -> Path:
    """Unpack the code. Processes of one node may do so at once: the first one's folder counts."""
    if not folder.is_dir():
        partial = tempfile.mkdtemp(dir=str(folder.parent))
        safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            tar.extractall(partial, **safe)  # noqa: S202 we packed it
        try:
            os.rename(partial, folder)  # noqa: PTH104 it must not replace
        except OSError:
            shutil.rmtree(partial)
            if not folder.is_dir():
                raise
    return folder


def install(packages: list[str], options: list[str], home: Path, cwd: Path) -> Path:
    """Install packages once for all processes of the node, on top of those of the image, which stay as they are.

    What is named by its place, such as `-r requirements.txt`, is installed for this place alone. All else may lie in a
    folder that outlives the node (TRAINPLANE_PACKAGES), for the next one that wants the same.
    """
    placed = any(package.startswith(("-", ".", "/")) or "file:" in package for package in packages)
    shared = None if placed else os.environ.get("TRAINPLANE_PACKAGES")
    if shared:
        home = Path(shared)
        home.mkdir(mode=0o700, exist_ok=True)
    where = str(cwd) if placed else ""
    key = hashlib.sha256(json.dumps([packages, options, where, sys.prefix, sys.version]).encode()).hexdigest()[:16]
    overlay = home / ("packages-" + key)
    done = overlay / "installed"
    with locked(home / (key + ".lock")):
        if not done.exists():
            sys.stderr.write("trainplane: installing " + ", ".join(packages) + "\n")
            build(overlay, [*options, *words(packages)], cwd)
            done.touch()
    return overlay


def build(overlay: Path, arguments: list[str], cwd: Path) -> None:
    """Make an environment that sees the image's packages, and install what they do not satisfy."""
    import venv  # noqa: PLC0415 slow, and seldom needed

    own_pip = importlib.util.find_spec("pip") is None
    try:
        venv.create(str(overlay), system_site_packages=True, clear=True, symlinks=True, with_pip=own_pip)
    except (OSError, subprocess.CalledProcessError) as error:
        raise failure(
            f"packages cannot be installed here ({error}): have them installed before, or choose an image with pip"
        ) from None
    outer = [entry for entry in sys.path if entry.endswith("-packages")]
    inherited = os.pathsep.join([*outer, *filter(None, [os.environ.get("PYTHONPATH")])])
    pip = [str(overlay / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    command = [*pip, "install", "--quiet", *arguments]
    if subprocess.call(command, cwd=str(cwd), env=dict(os.environ, PYTHONPATH=inherited)):
        raise failure(f"pip could not install {shlex.join(arguments)}: its own words stand above")


def words(packages: list[str]) -> Iterator[str]:
    """Yield pip's arguments: a requirement is one, an entry such as `-r requirements.txt` is several."""
    for package in packages:
        yield from shlex.split(package) if package.startswith("-") else [package]


def site_packages(overlay: Path) -> Path:
    """Return where an environment keeps its packages."""
    return overlay / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a lock against the other processes of this node; the system frees it if this one dies."""
    import fcntl  # noqa: PLC0415 seldom needed

    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def failure(message: str) -> SystemExit:
    """Return what ends the program with one line that says why."""
    return SystemExit("trainplane: " + message)


if __name__ == "__main__":
    main()
