"""Queries for logs: what a URL says, and what is read for it from an archive that is there."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import parse_qsl, quote_from_bytes, urlencode

from tests.security.fuzz.mutations import ODD_TEXTS, Mutator
from tests.security.fuzz.target import Target
from tests.unit.hub.kept import keep, numbered, pod
from tests.unit.hub.kubelet import START
from trainplane.hub.apiserver import logquery, logs
from trainplane.hub.errors import HubError
from trainplane.hub.logarchive.archive import Archive
from trainplane.hub.logarchive.retention import Retention
from trainplane.kube.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from trainplane.hub.logarchive.keptjob import KeptJob

_NAMES: Final = ("follow", "previous", "timestamps", "container", "rank", "step", "tailLines", "sinceSeconds", "pretty")
_VALUES: Final = ("", "true", "false", "1", "0", "2", "10", "all", "node", "launcher", "side", "999999999", "²", "٣")


class LogQueries(Target):
    """Query strings."""

    name: ClassVar[str] = "log-queries"
    cases: ClassVar[int] = 110_000

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-logs-"))
        self._archive = Archive(self._folder, Retention(), FakeClock())
        self._job: KeptJob
        for index in range(3):
            name = f"x-node-0-{index}-abcde"
            tree = pod(name, index=index, containers=("node", "side"))
            for run in range(2):
                keep(self._archive, tree, numbered(60, run * 100), run=run)
            self._job, _ = keep(self._archive, tree, numbered(20, text="\xff🙂"), container="side")

    def close(self) -> None:
        self._archive.close()
        shutil.rmtree(self._folder)

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        pairs: list[tuple[str, Any]] = []
        for _ in range(mutator.few(5)):
            name = mutator.pick(_NAMES) if mutator.chance(0.93) else mutator.pick(ODD_TEXTS)
            value = mutator.pick(_VALUES) if mutator.chance(0.75) else mutator.pick(ODD_TEXTS)
            pairs.append((name, value))
        text = urlencode(pairs).encode()
        return mutator.bytes(text) if mutator.chance(0.25) else text

    def run(self, data: bytes) -> str:
        # The server's own way: percent-decoded, what is no UTF-8 replaced, the first of a name counts.
        pairs = parse_qsl(quote_from_bytes(data, safe="&=+%;/?:@,"), keep_blank_values=True)
        try:
            query = logquery.parse(dict(reversed(pairs)))
        except HubError:
            return "refused"
        try:
            size = sum(len(chunk) for chunk in logs.read(self._job, query, START))
        except HubError:
            return "nothing"
        return "read" if size else "empty"

    def seeds(self) -> Iterable[bytes]:
        """Return a few good ones."""
        return (
            b"rank=0&tailLines=5",
            b"rank=all&timestamps=true",
            b"follow=false&previous=1&container=node",
            b"step=node&sinceSeconds=60",
        )
