"""What the reference said and made, step by step of each case: asked once, and believed for every fault.

    Recorder     a side that keeps what its API server answers, while conformance compares
    Recording    what was kept, by case; it can be kept in a file
    Replayed     a side that answers out of a recording, at once

An observation belongs to the last step that was taken in its namespace; the last one of a step is the settled one.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from tests.conformance.side import Answer, Side

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from tests.conformance.cases import Case, Step, Tree
    from tests.conformance.drive import Run

Objects = dict[str, list["Tree"]]

KEPT = "ke"
"""How namespaces of a recording that was kept begin; no side's do."""


@dataclass
class Told:
    """What was heard of one case: the answer to each step, and the objects after it, by how many were taken."""

    namespace: str
    answers: list[Answer] = field(default_factory=list)
    objects: dict[int, Objects] = field(default_factory=dict)


@dataclass
class Recording:
    """What the reference said of cases, by all that they say."""

    cases: dict[str, Told]

    def __contains__(self, case: Case) -> bool:
        return _key(case) in self.cases

    def of(self, case: Case) -> Told:
        """Return what was heard of a case."""
        return self.cases[_key(case)]

    def save(self, path: Path) -> None:
        """Write it to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = path.with_suffix(".part")
        with gzip.open(whole, "wt", compresslevel=1) as file:
            json.dump({name: asdict(told) for name, told in self.cases.items()}, file)
        whole.replace(path)

    @classmethod
    def load(cls, path: Path) -> Recording:
        """Read it from a file, with namespaces of its own: sessions give their cases the same ones."""
        with gzip.open(path, "rt") as file:
            kept: dict[str, Any] = json.load(file)
        return cls({name: _told(_moved(one, number)) for number, (name, one) in enumerate(kept.items())})


def _key(case: Case) -> str:
    return f"{case.id} {hashlib.sha256(repr(case).encode()).hexdigest()[:16]}"


def _moved(kept: Tree, number: int) -> Tree:
    """Return what was kept of a case as if it had run in another namespace, whose name is as long."""
    moved: Tree = json.loads(json.dumps(kept).replace(kept["namespace"], f"{KEPT}-{number:05d}-ns"))
    return moved


def _told(kept: Tree) -> Told:
    answers = [Answer(one["code"], one["body"], tuple(one["warnings"])) for one in kept["answers"]]
    objects = {int(taken): found for taken, found in kept["objects"].items()}
    return Told(kept["namespace"], answers, objects)


class Recorder(Side):
    """A side that remembers what it was told."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._told: dict[str, Told] = {}
        self._lock = threading.Lock()

    def perform(self, step: Step, namespace: str) -> Answer:
        """Take one step, and keep the answer."""
        answer = super().perform(step, namespace)
        with self._lock:
            self._told.setdefault(namespace, Told(namespace)).answers.append(answer)
        return answer

    def observe(self, namespaces: Collection[str]) -> Objects:
        """Return what there is, and keep it as what the last step led to."""
        found = super().observe(namespaces)
        apart: dict[str, Objects] = {name: {kind: [] for kind in found} for name in namespaces}
        for kind, items in found.items():
            for item in items:
                metadata = item["metadata"]
                home = metadata.get("namespace") or metadata["name"].partition(".")[0]
                if home in apart:
                    apart[home][kind].append(item)
        with self._lock:
            for name, objects in apart.items():
                told = self._told.setdefault(name, Told(name))
                told.objects[len(told.answers)] = objects
        return found

    def recording(self, runs: Iterable[Run]) -> Recording:
        """Return what was kept of some cases."""
        return Recording({_key(run.case): self._told[self.namespace(run.number)] for run in runs})


class Replayed(Side):
    """A side that answers out of a recording. It is told beforehand which cases come, in the order of their numbers."""

    def __init__(self, recording: Recording) -> None:
        self.name, self.prefix = "reference", ""
        self._recording = recording
        self._numbered: list[Told] = []
        self._here: dict[str, Told] = {}
        self._taken: defaultdict[str, int] = defaultdict(int)

    def expect(self, cases: Sequence[Case]) -> None:
        """Begin these cases anew; they have the next numbers."""
        told = [self._recording.of(case) for case in cases]
        self._numbered += told
        self._here = {one.namespace: one for one in told}
        self._taken.clear()

    def namespace(self, number: int) -> str:
        """Return the namespace that a case had."""
        return self._numbered[number].namespace

    def perform(self, step: Step, namespace: str) -> Answer:
        """Return the answer that the step had."""
        del step
        self._taken[namespace] += 1
        return self._here[namespace].answers[self._taken[namespace] - 1]

    def observe(self, namespaces: Collection[str]) -> Objects:
        """Return what there was after the last step."""
        found: Objects = defaultdict(list)
        for name in namespaces:
            for kind, items in self._here[name].objects.get(self._taken[name], {}).items():
                found[kind] += items
        return dict(found)

    def prepare(self, fence_runtime: Tree) -> None:
        """Do nothing: there is nobody to wait for."""

    def fence(self, document: Tree) -> None:
        """Do nothing, as above."""

    def make_namespace(self, name: str) -> None:
        """Do nothing: it was made."""

    def close(self) -> None:
        """Do nothing: no connection is open."""
