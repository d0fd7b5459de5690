"""Which objects of TrainJobs somebody deleted or changed, until they are put right; and how soon that is.

Watches say that something happened to an object, never to what: its data is not seen. So a TrainJob is looked at, and
what it should have is applied; an apply that changes nothing makes no event, so a look is not the cause of the next.
Our own writes come back as changes, too; they are told by what the API server answered to them.

The first look comes at once. Who keeps deleting is answered each time later, from one second up to a minute, and each
TrainJob counts for itself: a namespace at war with its own job costs one look a minute, and nobody else any.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from trainplane.api import names
from trainplane.kube.resource import Key, Resource
from trainplane.operator.owned import row, version_of
from trainplane.resources import CONFIG_MAPS

if TYPE_CHECKING:
    from trainplane.kube.clock import Clock
    from trainplane.kube.store import Change, Store
    from trainplane.operator.stores import Meta

FIRST_SECONDS: Final = 1.0
"""How long after a look the second may come; each further one waits twice as long."""
LONGEST_SECONDS: Final = 60.0
"""The longest such wait."""
CALM_SECONDS: Final = 300.0
"""How long a TrainJob's objects must have been left alone for the next look to come at once again."""

Place: TypeAlias = "tuple[Resource, str]"
"""A resource and a name, in the namespace of the TrainJob."""


class Mark(NamedTuple):
    """What became of an object."""

    uid: str
    version: int
    """As `owned.Row` has it; 0 if it is gone."""


GONE: Final = Mark("", 0)
"""The mark of an object that was found missing, and not seen to go."""


@dataclass
class Lost:
    """See the module's docstring. Fed by the mirrors of what is owned (`changed`), emptied by reconciles (`clear`)."""

    train_jobs: Store
    clock: Clock
    _marks: dict[Key, dict[Place, Mark]] = field(default_factory=dict)
    _looks: dict[Key, tuple[float, float]] = field(default_factory=dict)
    """When a TrainJob was last looked at for this, and how long the next look waits from then."""
    _left: dict[Key, dict[Place, Mark]] = field(default_factory=dict)
    """Objects as our last apply left them."""

    def changed(self, store: Store, change: Change) -> tuple[Key, float] | None:
        """Return the TrainJob that a change is news of, and how soon it is to be looked at; None if it is no news."""
        old, new = change.old, change.new
        if change.initial or old is None:
            return None
        was = row(old)
        key = Key(change.key.namespace, was.owner)
        if self.train_jobs.uid(key) != was.uid:
            return None  # the TrainJob is gone, and this with it
        if new is not None and (row(new).version == was.version or change.key.name == names.snapshot_name(was.owner)):
            return None  # a status; or a snapshot, which cannot be changed
        mark = Mark("", 0) if new is None else Mark(new.uid, row(new).version)
        self._marks.setdefault(key, {})[store.resource, change.key.name] = mark
        return key, self.wait(key)

    def note(self, key: Key, place: Place, written: Meta) -> None:
        """Remember how an apply of ours left an object: a change to just that is no news."""
        version = version_of(place[0], written.generation, int(written.resource_version))
        self._left.setdefault(key, {})[place] = Mark(written.uid, version)

    def of(self, key: Key) -> dict[Place, Mark]:
        """Return what was deleted or changed of a TrainJob's objects, and not by us."""
        marks = self._marks.get(key)
        if not marks:
            return {}
        left = self._left.get(key, {})
        self.clear(key, {place: mark for place, mark in marks.items() if left.get(place) == mark})
        return dict(self._marks.get(key, {}))

    def wait(self, key: Key) -> float:
        """Return the seconds until a TrainJob may be looked at again."""
        at, span = self._looks.get(key, (0.0, 0.0))
        return max(0.0, at + span - self.clock.monotonic()) if span else 0.0

    def began(self, key: Key) -> None:
        """Take note that a TrainJob is being looked at."""
        now = self.clock.monotonic()
        at, span = self._looks.get(key, (now, 0.0))
        longer = min(2 * span, LONGEST_SECONDS) if span and now - at < CALM_SECONDS else FIRST_SECONDS
        self._looks[key] = now, longer

    def clear(self, key: Key, marks: dict[Place, Mark]) -> None:
        """Forget what was put right, but not what has happened to it since."""
        kept = self._marks.get(key, {})
        for place, mark in marks.items():
            if kept.get(place) is mark:
                del kept[place]
        if not kept:
            self._marks.pop(key, None)

    def forget(self, key: Key) -> None:
        """Forget a TrainJob that is finished or gone."""
        for memory in (self._marks, self._looks, self._left):
            memory.pop(key, None)

    def train_job_changed(self, change: Change) -> None:
        """Forget a TrainJob that is gone, on a replica that does not lead as well."""
        if change.new is None:
            self.forget(change.key)


def snapshot_of(train_job: str) -> Place:
    """Return the place of a TrainJob's snapshot."""
    return CONFIG_MAPS, names.snapshot_name(train_job)
