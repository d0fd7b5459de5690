"""`hf://owner/name@branch/path` as a destination: a commit is whole or not there, so what is published is one.

Large files are uploaded as they are sent and belong to nothing until the commit that names them; small ones wait for
it in memory, up to a bound. The hub's own library does both, by hf-xet where the hub speaks it.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Final

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, constants
from huggingface_hub.errors import RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils.tqdm import disable_progress_bars

from trainplane.initializers.destination import Destination
from trainplane.initializers.errors import ChangedError, HostileError, NotFoundError
from trainplane.initializers.schemes.hub import open_hub

if TYPE_CHECKING:
    from trainplane.initializers.destination import Content, Outgoing
    from trainplane.initializers.request import Request
    from trainplane.initializers.schemes.hub import Hub

_PIECE: Final = 1 << 20
_MAX_HELD: Final = 8 << 20
"""Bytes of small files that wait for a commit; with more, they get one of their own."""
_MAX_SMALL: Final = 16 << 20
"""Bytes of a file that the hub wants inside a commit; it says so of files up to 10 MB."""
_FORBIDDEN: Final = (".git", ".cache")


class Commits(Destination):
    """A branch of a repository."""

    lasting = False
    large = 16 << 20

    def __init__(self, hub: Hub) -> None:
        disable_progress_bars()
        self._hub = hub
        self._branch = hub.place.revision or constants.DEFAULT_REVISION
        self._ready = asyncio.Lock()
        self._made = False
        self._additions: dict[str, CommitOperationAdd] = {}
        self._marks: dict[str, tuple[str, str]] = {}
        """What the commit will have, by path in the repository: as the hub stores small files, or large ones."""
        self._deletions: set[str] = set()
        self._held = 0

    def refuses(self, path: str) -> str:
        """Refuse what git or the hub's library would."""
        if any(part in _FORBIDDEN for part in path.split("/")):
            return f"{path[:200]!r} is in a folder that the hub does not take"
        return ""

    def _place(self, path: str) -> str:
        below = self._hub.place.below.strip("/")
        return f"{below}/{path}" if below else path

    async def send(self, content: Content) -> str:
        """Upload a large file, or keep a small one for the commit."""
        await self._prepare()
        held = bytearray()
        small = content.file.size <= _MAX_SMALL
        async for block in content.blocks(_PIECE):
            if small:
                held += block
        place = self._place(content.file.path)
        # Opened by its descriptor, the file is the one that was read, whatever its path leads to meanwhile.
        addition = CommitOperationAdd(place, f"/proc/self/fd/{content.descriptor}")
        addition.upload_info.sha256 = bytes.fromhex(content.sha256)
        await self._hub.ask(lambda: self._upload([addition]))
        content.check()
        # Private, but the library offers no other way to know which files it will read again for the commit.
        if addition._upload_mode == "regular":  # noqa: SLF001 see above
            if not small:
                raise HostileError(f"the hub wants {content.file.path!r} inside a commit, which is too large for that")
            addition = CommitOperationAdd(place, bytes(held))
            self._held += len(held)
            mark = f"git:{_git(bytes(held))}"
        else:
            mark = f"sha256:{content.sha256}"
        self._additions[place] = addition
        self._marks[place] = mark, f"sha256:{content.sha256}"
        if self._held > _MAX_HELD:
            await self._commit("Part of an output")
        return mark

    def _upload(self, additions: list[CommitOperationAdd]) -> None:
        self._hub.api.preupload_lfs_files(
            self._hub.place.name, additions, repo_type=self._hub.what, revision=self._branch, num_threads=1
        )

    async def _prepare(self) -> None:
        """Make sure that the repository and its branch are there; a new repository is private."""
        async with self._ready:
            if self._made:
                return
            await self._hub.ask(self._make)
            self._made = True

    def _make(self) -> None:
        api, name, what = self._hub.api, self._hub.place.name, self._hub.what
        if not api.repo_exists(name, repo_type=what):
            api.create_repo(name, repo_type=what, private=True, exist_ok=True)
        try:
            api.repo_info(name, revision=self._branch, repo_type=what, timeout=60)
        except RevisionNotFoundError:
            api.create_branch(name, branch=self._branch, repo_type=what, exist_ok=True)
        constants.HF_HUB_DISABLE_XET = not self._speaks_xet()

    def _speaks_xet(self) -> bool:
        """Return whether the hub has a token for uploads by hf-xet: the library would take it for granted."""
        hub = self._hub
        url = f"{hub.api.endpoint}/api/{hub.what}s/{hub.place.name}/xet-write-token/{self._branch}"
        answer = huggingface_hub.get_session().get(url, headers={"Authorization": f"Bearer {hub.token}"})
        return bool(answer.status_code == 200)

    async def holds(self, file: Outgoing, mark: str) -> bool:
        """Compare the checksum that the branch has."""
        found = await self._look([self._place(file.path)])
        return found.get(self._place(file.path)) == mark

    async def withdraw(self, name: str) -> None:
        """Have a manifest removed by the next commit."""
        await self._prepare()
        place = self._place(name)
        if await self._look([place]):
            self._deletions.add(place)

    async def publish(self, name: str, manifest: bytes) -> None:
        """Commit all that was sent since the last time, with its manifest."""
        place = self._place(name)
        self._additions[place] = CommitOperationAdd(place, manifest)
        self._marks[place] = f"git:{_git(manifest)}", f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        await self._commit(f"Add {name}")

    async def _commit(self, message: str) -> None:
        deletions = [CommitOperationDelete(place) for place in self._deletions - self._additions.keys()]
        operations = [*deletions, *self._additions.values()]
        await self._hub.ask(lambda: self._send(operations, message))
        # A commit whose look breaks off is not made twice.
        self._additions.clear()
        self._deletions.clear()
        self._held = 0
        for some in _chunks(list(self._marks)):
            found = await self._look(some)
            for place in some:
                if found.get(place) not in self._marks[place]:
                    raise ChangedError(
                        f"{place!r} is not in the commit as it was sent",
                        "see that no .gitignore of the repository leaves it out, and that nobody else writes there",
                    )
        self._marks.clear()

    def _send(self, operations: list[Any], message: str) -> None:
        self._hub.api.create_commit(
            self._hub.place.name,
            operations,
            commit_message=message,
            repo_type=self._hub.what,
            revision=self._branch,
            num_threads=1,
        )

    async def _look(self, places: list[str]) -> dict[str, str]:
        """Return the checksums of files of the branch."""
        api, name, what = self._hub.api, self._hub.place.name, self._hub.what
        try:
            entries = await self._hub.ask(
                lambda: api.get_paths_info(name, places, revision=self._branch, repo_type=what)
            )
        except NotFoundError:
            return {}
        return {
            entry.path: f"sha256:{entry.lfs.sha256}" if entry.lfs is not None else f"git:{entry.blob_id}"
            for entry in entries
            if isinstance(entry, RepoFile)
        }

    async def close(self) -> None:
        """Close all connections."""
        huggingface_hub.close_session()


def _git(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _chunks(places: list[str]) -> list[list[str]]:
    return [places[at : at + 500] for at in range(0, len(places), 500)]


def open_destination(request: Request) -> Destination:
    """Return what is written to: a model, unless the URI begins with hf://datasets/."""
    return Commits(open_hub(request, "dataset" if request.uri.startswith("hf://datasets/") else "model"))
