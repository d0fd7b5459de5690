"""The store against a model that keeps every version ever told and computes what must be there."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.kube.loop.objects import THINGS, effort, thing
from trainplane.kube.projection import Index
from trainplane.kube.resource import Key
from trainplane.kube.store import Change, Store

NAMES = st.sampled_from("abcd")
VERSIONS = st.integers(1, 30)
UIDS = st.sampled_from(["one", "two"])
QUEUES = st.lists(st.sampled_from(["gold", "silver"]), max_size=3)


class Spec(msgspec.Struct):
    queues: list[str]


class View(msgspec.Struct):
    spec: Spec


class StoreMachine(RuleBasedStateMachine):
    """Any order of writes, repeated, late or reordered: the highest version told of a key decides."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(THINGS, indexes={"queue": Index(View, lambda view: view.spec.queues)})
        self.known: dict[Key, int] = {}
        self.live: dict[Key, dict[str, Any]] = {}
        self.mirror: dict[Key, tuple[int, str]] = {}

    @rule(name=NAMES, version=VERSIONS, uid=UIDS, queues=QUEUES)
    def put(self, name: str, version: int, uid: str, queues: list[str]) -> None:
        key = Key("default", name)
        self.follow(self.store.put(self.store.read(thing(name, version, uid=uid, spec={"queues": queues}))))
        if version > self.known.get(key, 0):
            self.known[key] = version
            self.live[key] = {"version": version, "uid": uid, "queues": set(queues)}

    @rule(name=NAMES, version=VERSIONS)
    def delete(self, name: str, version: int) -> None:
        key = Key("default", name)
        self.follow(self.store.delete(self.store.read(thing(name, version))))
        if version >= self.known.get(key, 0):
            self.known[key] = version
            self.live.pop(key, None)

    def follow(self, changes: tuple[Change, ...]) -> None:
        """Replay changes; each must fit what the ones before it left."""
        for change in changes:
            before = self.mirror.pop(change.key, None)
            assert before == (change.old and (change.old.resource_version, change.old.uid))
            if change.new is not None:
                self.mirror[change.key] = (change.new.resource_version, change.new.uid)
                if change.old is not None:
                    assert change.old.uid == change.new.uid
                    assert change.old.resource_version < change.new.resource_version
            kind = {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}
            assert change.type == kind[change.old is not None, change.new is not None]

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert set(self.store) == set(self.live)
        for key, expected in self.live.items():
            assert self.store.resource_version(key) == expected["version"]
            assert self.store.uid(key) == expected["uid"]
            view = self.store.decode(key, View)
            assert view is not None
            assert set(view.spec.queues) == expected["queues"]

    @invariant()
    def changes_tell_the_whole_story(self) -> None:
        assert self.mirror == {key: (value["version"], value["uid"]) for key, value in self.live.items()}

    @invariant()
    def indexes_find_exactly_what_is_there(self) -> None:
        for queue in ("gold", "silver"):
            expected = {key for key, value in self.live.items() if queue in value["queues"]}
            assert self.store.by_index("queue", queue) == expected


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = effort(60, 30)
