"""What is released: a commit, its time, its version and its tag. Files come from the commit, never from the folder.

So what lies beside in a checkout (a note, a key, an edit that nobody committed) cannot get into a package.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from release.errors import ReleaseError

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Source:
    """A commit that is to be released."""

    commit: str
    epoch: int
    """When it was committed, in seconds since 1970: the time of every file that is made of it."""
    version: str
    tag: str = ""
    """Its tag, if it has one that begins with v; without, this is a rehearsal."""

    def export(self, folder: Path) -> None:
        """Write the commit's files into a folder, without git."""
        archive = subprocess.run(
            ["git", "archive", "--format=tar", self.commit], cwd=REPOSITORY, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as content:
            content.extractall(folder, filter="data")


def read() -> Source:
    """Return what is checked out.

    Raises:
        ReleaseError: its tag names another version, or this is no checkout.
    """
    commit = _git("rev-parse", "HEAD")
    version = version_of(_git("show", f"{commit}:pyproject.toml"))
    tags = [tag for tag in _git("tag", "--points-at", commit).split() if tag.startswith("v")]
    problems = [problem for tag in tags if (problem := disagreement(tag, version))]
    if problems:
        raise ReleaseError(*problems)
    return Source(commit, int(_git("log", "-1", "--format=%ct", commit)), version, tags[0] if tags else "")


def version_of(pyproject: str) -> str:
    """Return the version that a pyproject.toml declares."""
    return str(tomllib.loads(pyproject)["project"]["version"])


def disagreement(tag: str, version: str) -> str:
    """Return what is wrong between a tag and the version that its commit declares; empty if they agree."""
    if tag == f"v{version}":
        return ""
    return f"tag {tag}: pyproject.toml has version {version}: set it to {tag.removeprefix('v')}, commit, and tag that"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {done.stderr.strip()}: a release is made of a commit, in a checkout")
    return done.stdout.strip()
