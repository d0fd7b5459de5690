"""Containerd's folder with every image of the lab imported and unpacked, made once and shared by hard links.

An import of the torch image takes half a minute; a node that starts from links into a prepared folder takes none of it.
Layers are never written to once unpacked, so links are safe; the two databases are copied.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from typing import IO, TYPE_CHECKING, Any

from lab.errors import BuildError
from lab.images import IMAGES, Image, usual
from lab.paths import cache_root
from lab.processes import run, wait_for
from lab.sandbox import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

RUN = "/run/containerd"
SOCKET = f"{RUN}/containerd.sock"
_READY_SECONDS = 120
_DATABASES = ("io.containerd.metadata.v1.bolt/meta.db", "io.containerd.snapshotter.v1.overlayfs/metadata.db")


def config(root: Path, *, run: str = RUN, network: str = "/etc/cni/net.d") -> str:
    """Return containerd's configuration for a node, or for the preparation of its folder.

    `run` is where it keeps its socket and what ends with it, `network` where it reads how pods get addresses.
    """
    return f"""version = 2
root = "{root}"
state = "{run}"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{run}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{IMAGES["pause"].reference}"
disable_apparmor = true
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{network}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def prepared() -> Path:
    """Return the folder in the cache for just these images."""
    keys = " ".join(image.key() for image in usual())
    return cache_root() / "containerd" / hashlib.sha256(keys.encode()).hexdigest()[:16]


def prepare() -> None:
    """Make the prepared folder unless it is there."""
    final = prepared()
    if final.exists():
        return
    start = time.monotonic()
    partial = final.with_name(f"{final.name}.partial.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    sandbox = Sandbox.create(f"images-{os.getpid()}", owned=True)
    try:
        _import_all(sandbox, partial)
    finally:
        sandbox.destroy()
    for older in final.parent.iterdir():
        if older != partial:
            shutil.rmtree(older, ignore_errors=True)
    partial.rename(final)
    print(f"images: unpacked for containerd in {time.monotonic() - start:.0f} s", flush=True)


def link_to(folder: Path) -> None:
    """Make a containerd folder for a node out of the prepared one."""
    source = prepared()
    if not source.exists():
        message = "the images are not built for this checkout: run `make images`."
        raise BuildError(message)
    run(["cp", "--archive", "--link", str(source), str(folder)])
    for database in _DATABASES:
        (folder / database).unlink()
        shutil.copy(source / database, folder / database)


def wait_answering(sandbox: Sandbox, run: str = RUN) -> None:
    """Wait until a containerd of a sandbox answers."""

    def answers() -> bool:
        return sandbox.run(["ctr", "--address", f"{run}/containerd.sock", "version"], check=False).code == 0

    wait_for("containerd", answers, seconds=_READY_SECONDS, log=sandbox.folder / "logs" / "containerd.log")


def _import_all(sandbox: Sandbox, root: Path) -> None:
    settings = sandbox.folder / "containerd.toml"
    settings.write_text(config(root))
    process = sandbox.spawn("containerd", ["containerd", "--config", str(settings)])
    wait_answering(sandbox)
    for image in usual():
        print(f"  {image.name}: import", flush=True)
        import_into(sandbox, image)
    process.signal(15)
    process.wait_gone(30)


def import_into(sandbox: Sandbox, image: Image) -> None:
    """Give the containerd of a sandbox an image: all of them when its folder is prepared, one on demand later."""
    if not (image.built() / "build.json").exists():
        message = f"the image {image.name} is not built: run `make images{' FULL=1' if image.on_demand else ''}`."
        raise BuildError(message)
    command = ["ctr", "--address", SOCKET, "--namespace", "k8s.io", "images", "import", "-"]
    with subprocess.Popen(sandbox.command(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importer:
        if importer.stdin is not None:
            write_archive(image, importer.stdin)
            importer.stdin.close()
    if importer.returncode:
        message = f"containerd refused the image {image.name}: see its last words above"
        raise BuildError(message)


def write_archive(image: Image, sink: IO[bytes]) -> None:
    """Write an image as a docker-archive."""
    layers = {(layer.built() / "layer.sha256").read_text(): layer.built() / "layer.tar" for layer in image.layers()}
    settings = {"Env": list(image.environment), "Cmd": list(image.entrypoint) or ["/bin/sh"], "WorkingDir": "/"}
    write_layers(image.reference, settings, layers, sink)


def write_layers(reference: str, settings: dict[str, Any], layers: dict[str, Path], sink: IO[bytes]) -> None:
    """Write a docker-archive: layers by their sha256, a config that names them, a manifest."""
    described = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in layers]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": [f"{digest}.tar" for digest in layers]}]
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name, content in (("manifest.json", manifest), ("config.json", described)):
            data = json.dumps(content).encode()
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
        for digest, path in layers.items():
            archive.add(path, arcname=f"{digest}.tar")
