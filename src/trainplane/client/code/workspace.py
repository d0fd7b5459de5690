"""A folder of the user's as files to ship."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainplane.client.code import gitignore
from trainplane.client.code.payload import File, too_large
from trainplane.client.errors import CodeError
from trainplane.client.types.trainers import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.client.code.gitignore import Rule

IGNORE_FILES: Final = (".gitignore", ".trainplaneignore")
_ALWAYS: Final = (
    ".*/",
    "__pycache__/",
    "*.py[co]",
    "*.egg-info/",
    "node_modules/",
    ".DS_Store",
    # where people keep tokens
    ".env",
    ".env.*",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".dockercfg",
    ".dockerconfigjson",
    ".git-credentials",
    ".htpasswd",
    "kaggle.json",
    "kubeconfig",
    "*.kubeconfig",
    # keys
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "*.ppk",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
)
"""Caches, and what is a secret by its name. A `!` in .trainplaneignore brings one back, to be searched as all others:
`*.pem` and `*.key` go along for that reason, since a certificate is no secret."""
_READ_LIMIT: Final = 64 * 1024 * 1024
"""Bytes above which nothing is even read: no compressor makes a payload of that."""


def root_of(workspace: str | os.PathLike[str] | Workspace) -> Path:
    """Return the folder, resolved.

    Raises:
        CodeError: there is none.
    """
    path = Path(workspace.path if isinstance(workspace, Workspace) else workspace).expanduser()
    if not path.is_dir():
        raise CodeError(f"workspace {str(path)!r} is no folder here (in {Path.cwd()})")
    return path.resolve()


def read(workspace: str | os.PathLike[str] | Workspace) -> dict[str, File]:
    """Return the files of a workspace by their path in it. Links to files are followed, links to folders are not.

    Raises:
        CodeError: it is no folder, or far too large.
    """
    root = root_of(workspace)
    own = workspace.ignore if isinstance(workspace, Workspace) else ()
    paths = list(_walk(root, "", gitignore.parse(_ALWAYS), gitignore.parse(own)))
    sizes = [(path, (root / path).stat().st_size) for path in paths]
    total = sum(size for _, size in sizes)
    if total > _READ_LIMIT:
        raise CodeError(too_large(f"{total // 1024 // 1024} MiB before it is packed", sizes))
    return {path: File((root / path).read_bytes(), os.access(root / path, os.X_OK)) for path in paths}


def _walk(root: Path, base: str, rules: list[Rule], own: list[Rule]) -> Iterator[str]:
    """Yield paths in the order of the alphabet. What a folder's own files say counts after its parents' words."""
    here = root / base
    for name in IGNORE_FILES:
        if (here / name).is_file():
            rules = [*rules, *gitignore.parse((here / name).read_text(encoding="utf-8").splitlines(), base)]
    for entry in sorted(os.scandir(here), key=lambda entry: entry.name):
        path = base + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if gitignore.ignores([*rules, *own], path, is_folder=is_folder):
            continue
        if is_folder:
            if not Path(entry.path, "pyvenv.cfg").exists():
                yield from _walk(root, f"{path}/", rules, own)
        elif entry.is_file():
            yield path
