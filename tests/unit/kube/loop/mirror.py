"""A handler that rebuilds the world from changes, and insists that each fits those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainplane.kube.resource import Key
    from trainplane.kube.store import Change, Store


class Mirror:
    """What somebody who only ever hears of changes believes to be there: uid and resourceVersion by key.

    What does not fit is kept in `broken`, since a reflector survives whatever its handlers raise.
    """

    def __init__(self) -> None:
        self.state: dict[Key, tuple[str, int]] = {}
        self.heard: list[tuple[str, str, bool]] = []
        self.highest: dict[Key, int] = {}
        self.broken: list[str] = []

    def __call__(self, change: Change) -> None:
        old = change.old and (change.old.uid, change.old.resource_version)
        self._insist(self.state.pop(change.key, None) == old, change, "begins where the last one ended")
        if change.new is not None:
            version = change.new.resource_version
            self._insist(version > self.highest.get(change.key, 0), change, "is newer than any before it")
            same = change.old is None or change.old.uid == change.new.uid
            self._insist(same, change, "of another uid is a delete and an add")
            self.highest[change.key] = version
            self.state[change.key] = (change.new.uid, version)
        self.heard.append((change.type, change.key.name, change.initial))

    def of(self, store: Store) -> bool:
        """Whether the changes all fitted and add up to what the store holds."""
        assert self.broken == []
        held = {key: (store.uid(key), store.resource_version(key)) for key in store}
        return held == self.state

    def _insist(self, fits: bool, change: Change, rule: str) -> None:
        if not fits:
            self.broken.append(f"not so: a change {rule}: {change}")
