"""What is drawn once for a job: SSH keys for MPI, a certificate for Flux.

The operator draws them with `cryptography`, which the SDK does without. SSH keys can then be drawn by `ssh-keygen`;
nothing else is one, so nothing else is given one.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.client.errors import InvalidError
from trainplane.render.plugins.mpi import make_keys

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.render.plan import CreateOnce


def make_kept(kept: CreateOnce) -> Tree:
    """Return an object that is made once and kept.

    Raises:
        InvalidError: nothing here can draw what it holds.
    """
    try:
        content = kept.make()
    except ImportError as error:
        if kept.make is not make_keys:
            raise InvalidError(
                f"spec.runtimeRef: the runtime needs {kept.kind} {kept.name}, which is drawn with a library that is "
                f"not installed here ({error}): `pip install cryptography`"
            ) from error
        content = {"data": draw_keys()}
    return {"apiVersion": kept.api_version, "kind": kept.kind, "metadata": {"name": kept.name}, **content}


def draw_keys() -> dict[str, str]:
    """Return a new pair of SSH keys as a Secret has them.

    Raises:
        InvalidError: there is no `ssh-keygen`.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "key"
        command = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", "", "-C", "", "-f", str(file)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise InvalidError(
                "spec.runtimeRef: MPI needs SSH keys, and there is no ssh-keygen here: install openssh-client, or "
                "`pip install cryptography`"
            ) from error
        pair = {names.MPI_SSH_PRIVATE_KEY: file, names.MPI_SSH_PUBLIC_KEY: file.with_suffix(".pub")}
        return {name: base64.b64encode(path.read_bytes()).decode() for name, path in pair.items()}
