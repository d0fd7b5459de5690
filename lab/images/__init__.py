"""The container images of the lab: what is in them, and where they lie once built.

No registry is at hand, so an image is a Debian root folder packed as layers and imported into containerd. Images build
on each other as in a Dockerfile: the layer of a derived image holds only what it adds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from lab.engines import ENGINES
from lab.paths import cache_root

REGISTRY = "lab.trainplane.dev"
"""The name under which images are known inside a cluster; nothing answers there, nothing is ever pulled."""
SUITE = "trixie"
"""The Debian release inside images: the first whose torch runs torchrun on its Python."""
_LAYOUT = 3
"""Raised when the way of building changes, so that older cached images are not taken for new ones."""
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """One image: a base, Debian packages on it, and a script that finishes it."""

    name: str
    base: str = ""
    """The image it builds on; empty for a root folder of its own."""
    packages: tuple[str, ...] = ()
    """Debian packages to install."""
    wheels: str = ""
    """The list of `lab/images` with Python packages, hashes and all, that are put in after the Debian ones."""
    prefixes: tuple[str, ...] = field(default=(), repr=False)
    """Further such lists, each put into a folder of /opt that is named after it: programs that cannot lie together."""
    without: tuple[str, ...] = ()
    """Folders of those Python packages that nobody runs, left out."""
    finish: str = ""
    """The shell script of `lab/images` that runs inside the image's root at the end."""
    environment: tuple[str, ...] = (_PATH,)
    """`NAME=value` settings of every container of the image."""
    entrypoint: tuple[str, ...] = ()
    """The command that runs when a pod names none."""
    on_demand: bool = field(default=False, repr=False)
    """Whether full-size tests alone use it: `make images FULL=1` builds it, and a node has it once it is imported."""

    @property
    def reference(self) -> str:
        """The name by which a pod asks for it."""
        return f"{REGISTRY}/{self.name}:1"

    def key(self) -> str:
        """Return the hash of all that decides what is in the image."""
        parts = [repr(self), str(_LAYOUT), SUITE]
        files = (self.wheels, *self.prefixes, self.finish)
        parts += [(Path(__file__).parent / file).read_text() for file in files if file]
        if self.name == "pause":
            parts.append(ENGINES["pause"].key())
        if self.base:
            parts.append(IMAGES[self.base].key())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def built(self) -> Path:
        """Return the folder in the cache where this very image is, or will be."""
        return cache_root() / "images" / self.name / self.key()

    def layers(self) -> list[Image]:
        """Return the images whose layers make up this one, lowest first."""
        return [*IMAGES[self.base].layers(), self] if self.base else [self]


IMAGES: dict[str, Image] = {
    image.name: image
    for image in (
        Image("pause", entrypoint=("/pause",)),
        Image("python", packages=("python3", "ca-certificates")),
        Image(
            "torch",
            base="python",
            packages=("python3-torch", "python3-numpy", "python3-mpi4py", "openmpi-bin", "openssh-server"),
            finish="torch.sh",
            # Debian's torch is built without libuv, and its default store would ask for it.
            environment=(_PATH, "USE_LIBUV=0"),
        ),
        Image(
            "frameworks",
            base="python",
            wheels="frameworks.txt",
            without=("tensorflow/include", "clang"),
            finish="frameworks.sh",
        ),
        Image(
            "mpi",
            base="python",
            packages=("openssh-server",),
            wheels="mpi/python.txt",
            prefixes=("mpi/openmpi4.txt", "mpi/openmpi5.txt", "mpi/mpich.txt", "mpi/intel.txt"),
            finish="mpi.sh",
        ),
        Image(
            "deepspeed",
            base="torch",
            wheels="deepspeed.txt",
            finish="mpiuser.sh",
            environment=(_PATH, "USE_LIBUV=0"),
            on_demand=True,
        ),
        Image(
            "mlx",
            base="python",
            packages=("openmpi-bin", "openssh-server"),
            wheels="mlx.txt",
            finish="mpiuser.sh",
            on_demand=True,
        ),
        Image(
            "torchtune",
            base="torch",
            wheels="torchtune.txt",
            finish="torchtune.sh",
            environment=(_PATH, "USE_LIBUV=0"),
            on_demand=True,
        ),
        Image(
            "paddle",
            base="python",
            packages=("libgomp1", "python-is-python3"),
            wheels="paddle.txt",
            on_demand=True,
        ),
    )
}
"""All images, each after the one it builds on."""


def usual() -> list[Image]:
    """Return the images that every node has from its start."""
    return [image for image in IMAGES.values() if not image.on_demand]


def reference(name: str) -> str:
    """Return the name by which a pod asks for an image of the lab."""
    return IMAGES[name].reference
