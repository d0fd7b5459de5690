"""A Python of this machine that has torch: the lab's image, behind a script that behaves as its python3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.images import IMAGES

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!/bin/sh
exec unshare --mount --propagation private sh -euc '
here=$PWD
mount -t overlay overlay -o lowerdir={lower} {root}
for shared in /tmp /proc /dev; do mount --rbind $shared {root}$shared; done
for known in /etc/hosts /etc/hostname; do [ ! -e {root}$known ] || mount --bind $known {root}$known; done
inside="cd \\"\\$0\\" && exec env {environment} /usr/bin/python3 \\"\\$@\\""
exec chroot {root} sh -c "$inside" "$here" "$@"' python3 "$@"
"""


def make_interpreter(image: str, folder: Path) -> Path:
    """Return an executable that behaves as the image's python3 does, on this machine's network and in its /tmp.

    The layers are mounted in a mount namespace of the process: when it ends, nothing is left.
    """
    root = folder / "root"
    root.mkdir()
    lower = ":".join(str(layer.built() / "root") for layer in reversed(IMAGES[image].layers()))
    environment = " ".join(entry for entry in IMAGES[image].environment if not entry.startswith("PATH="))
    script = folder / "python3"
    script.write_text(_SCRIPT.format(lower=lower, root=root, environment=environment))
    script.chmod(0o755)
    return script
