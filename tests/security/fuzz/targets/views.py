"""What the hub shows of a TrainJob, made from pods and events that a worker sends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from tests.security.fuzz.mutations import Mutator, encode
from tests.security.fuzz.target import Target
from tests.unit.hub.kept import pod
from trainplane.api.names import TRAIN_JOB
from trainplane.hub.apiserver import view
from trainplane.hub.placement import Placement
from trainplane.kube.errors import StreamError
from trainplane.kube.resource import PODS
from trainplane.kube.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

Tree = dict[str, Any]

_NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
_JOB: Final[Tree] = {
    "metadata": {"name": "x", "namespace": "team", "uid": "job-1", "creationTimestamp": "2026-02-01T00:00:00Z"},
    "spec": {"managedBy": "kueue.x-k8s.io/multikueue"},
    "status": {"jobsStatus": [{"name": "node", "ready": 1}], "conditions": []},
}
_EVENT: Final[Tree] = {
    "metadata": {"name": "e", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"a": "b"}},
    "involvedObject": {"kind": "Pod", "name": "x-node-0-0-abcde"},
    "series": {"lastObservedTime": "2026-01-01T00:00:09.123456Z"},
    "firstTimestamp": "2026-01-01T00:00:00Z",
    "lastTimestamp": None,
    "type": "Warning",
}
_PLACE: Final = Placement("team", "x", "job-1", "worker1", (), "trainjob-x-abcde", "Dispatched", "admitted on worker1")


class Views(Target):
    """Pods as a mirror keeps them, and events as a list brings them."""

    name: ClassVar[str] = "views"
    cases: ClassVar[int] = 60_000

    def __init__(self) -> None:
        tree = pod()
        tree["metadata"]["resourceVersion"] = "7"
        self._seed = msgspec.json.encode({"pods": [tree], "events": [_EVENT, _EVENT]})

    def generate(self, random: Random) -> bytes:
        mutator = Mutator(random)
        case = msgspec.json.decode(self._seed)
        part = mutator.pick(("pods", "events"))
        if mutator.chance(0.8):
            case[part][0] = mutator.tree(case[part][0])
        else:
            case[part] = mutator.tree(case[part])
        return encode(case)

    def run(self, data: bytes) -> str:
        try:
            case = msgspec.json.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return "no case"
        if not isinstance(case, dict):
            return "no case"
        events = [one for one in _listed(case.get("events")) if isinstance(one, dict)]
        store = Store(PODS)
        for one in _listed(case.get("pods")):
            try:
                store.put(store.read(msgspec.Raw(encode(one))))
            except StreamError:
                return "no pod"
        pods = [("worker1", tree) for key in store if (tree := store.decode(key, dict)) is not None]
        item = view.summary(_JOB, _PLACE, pods, kept_bytes=0, problem=None)
        names = frozenset(tree["metadata"]["name"] for _, tree in pods)
        about = [("worker1", one) for one in events if view.concerns(one, _JOB, workload="w", pods=names)]
        shown = (
            item,
            view.listing(TRAIN_JOB, [item], "1"),
            view.table([item], "1", _NOW),
            view.pod_list(pods),
            view.event_list(about),
        )
        msgspec.json.encode(shown)
        return f"{len(about)} events"

    def seeds(self) -> Iterable[bytes]:
        """Return the good case."""
        return (self._seed,)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
