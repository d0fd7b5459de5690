"""Build what is missing of the images: `make images`.

Roots come from debootstrap; a derived image is built in an overlay over its base, inside a mount namespace of its own,
so that a killed build leaves no mount. Layers are written once, with whiteouts as the OCI format wants them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from lab.engines import binary
from lab.errors import BuildError
from lab.images import IMAGES, SUITE, Image, usual
from lab.images.containerd_root import prepare

_CLEAN = "apt-get clean; rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/*.log /usr/sbin/policy-rc.d"
_PYTHON = "3.13"
"""The Python of the Debian release inside images."""
_PLATFORM = "x86_64-manylinux_2_40"
"""The newest platform of wheels that the release's C library, 2.41, runs."""
_PYTHON_FOLDER = f"usr/local/lib/python{_PYTHON}/dist-packages"
"""Where that Python looks for what Debian did not package."""
_INSTALL = (
    "printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; export DEBIAN_FRONTEND="
    "noninteractive; apt-get update -qq; apt-get install -y -qq --no-install-recommends {packages}"
)


def build_missing() -> dict[str, float]:
    """Build the images that the cache lacks; return the seconds of each that was built now.

    With FULL=1 those on demand too.
    """
    wanted = list(IMAGES.values()) if os.environ.get("FULL") == "1" else usual()
    missing = [image for image in wanted if not (image.built() / "build.json").exists()]
    seconds: dict[str, float] = {}
    for position, image in enumerate(missing, start=1):
        print(f"images: [{position}/{len(missing)}] {image.name}", flush=True)
        start = time.monotonic()
        _build(image)
        seconds[image.name] = round(time.monotonic() - start, 1)
        (image.built() / "build.json").write_text(json.dumps({"seconds": seconds[image.name]}))
        print(f"  {image.name}: done in {seconds[image.name]:.0f} s", flush=True)
    if not missing:
        print(f"images: all {len(wanted)} are built", flush=True)
    return seconds


def _build(image: Image) -> None:
    final = image.built()
    partial = final.with_name(f"{final.name}.partial.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    root = partial / "root"
    root.mkdir(parents=True)
    if image.name == "pause":
        shutil.copy(binary("pause"), root / "pause")
    elif image.base:
        _derive(image, partial)
    else:
        _bootstrap(image, root)
    digest = _pack(root, partial / "layer.tar")
    (partial / "layer.sha256").write_text(digest)
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def _mirror() -> str:
    """Return the Debian mirror that this machine's apt is set up with."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE) $(SUITE)"], capture_output=True, text=True, check=True
    )
    sites = [line.split()[0] for line in listed.stdout.splitlines() if "security" not in line]
    if not sites:
        message = "apt knows no Debian mirror: run `apt-get update` first"
        raise BuildError(message)
    return sites[0]


def _bootstrap(image: Image, root: Path) -> None:
    packages = ",".join(image.packages)
    _run(["debootstrap", "--variant=minbase", f"--include={packages}", SUITE, str(root), _mirror()], image)
    _run(["chroot", str(root), "sh", "-euc", _CLEAN], image)
    # Device nodes of the build machine do not belong in a layer: the container runtime makes its own.
    shutil.rmtree(root / "dev", ignore_errors=True)
    (root / "dev").mkdir()


def _derive(image: Image, partial: Path) -> None:
    """Install packages in an overlay over the base; what the overlay caught is the new layer.

    Python packages lie in it already, so that the script that finishes the image can finish them too.
    """
    if image.wheels:
        _add_wheels(image, image.wheels, partial / "root" / _PYTHON_FOLDER)
        for folder in image.without:
            shutil.rmtree(partial / "root" / _PYTHON_FOLDER / folder)
    for name in image.prefixes:
        _add_wheels(image, name, partial / "root/opt" / Path(name).stem)
    for folder in ("work", "merged"):
        (partial / folder).mkdir()
    lower = ":".join(str(layer.built() / "root") for layer in reversed(IMAGES[image.base].layers()))
    steps = [_INSTALL.format(packages=" ".join(image.packages))] if image.packages else []
    if image.finish:
        steps.append((Path(__file__).parent / image.finish).read_text())
    steps.append(_CLEAN)
    merged = partial / "merged"
    script = f"""
set -eu
mount -t overlay overlay -o lowerdir={lower},upperdir={partial}/root,workdir={partial}/work {merged}
mount -t proc proc {merged}/proc
mount --bind /dev {merged}/dev
cp /etc/resolv.conf {merged}/etc/resolv.conf
chroot {merged} sh -eu
"""
    _run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], image, stdin="\n".join(steps))
    for folder in ("work", "merged"):
        shutil.rmtree(partial / folder)


def _add_wheels(image: Image, name: str, target: Path) -> None:
    """Unpack Python packages for the image's Python, by the list's hashes, from the index that this machine uses."""
    listed = Path(__file__).parent / name
    platform = [f"--python-version={_PYTHON}", f"--python-platform={_PLATFORM}"]
    options = [*platform, "--quiet", "--no-deps", "--require-hashes", "--no-cache", "--link-mode=copy"]
    _run(
        [sys.executable, "-m", "uv", "pip", "install", *options, f"--target={target}", f"--requirement={listed}"], image
    )


def _run(command: list[str], image: Image, stdin: str = "") -> None:
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
    done = subprocess.run(
        command, env=environment, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-15:])
        message = f"image {image.name}: `{command[0]}` ended with {done.returncode}:\n{tail}"
        raise BuildError(message)


def _pack(root: Path, target: Path) -> str:
    """Write the layer of a root folder; return its sha256, which the image's config names."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for folder, names, files in os.walk(root):
            names.sort()
            for name in sorted([*names, *files]):
                path = Path(folder) / name
                arcname = str(path.relative_to(root))
                if _is_whiteout(path):
                    archive.addfile(tarfile.TarInfo(str(Path(arcname).with_name(f".wh.{name}"))))
                else:
                    archive.add(path, arcname=arcname, recursive=False)
                    if path.is_dir() and not path.is_symlink() and _is_opaque(path):
                        archive.addfile(tarfile.TarInfo(f"{arcname}/.wh..wh..opq"))
    with target.open("rb") as layer:
        return hashlib.file_digest(layer, "sha256").hexdigest()


def _is_whiteout(path: Path) -> bool:
    """Tell if overlayfs marks this name as removed: a character device 0/0."""
    status = path.lstat()
    return (status.st_mode & 0o170000) == 0o020000 and status.st_rdev == 0


def _is_opaque(path: Path) -> bool:
    try:
        return os.getxattr(path, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def main() -> int:
    """Build all images and the containerd folder that holds them unpacked."""
    try:
        build_missing()
        prepare()
    except BuildError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
