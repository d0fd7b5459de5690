"""What a user does and sees, with kubectl alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml

from lab.processes import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lab.cluster import Cluster
    from lab.processes import Result

PATIENCE = 180.0
"""Seconds that anything may take on a busy machine of two cores."""

_PAUSE = 0.3
"""Seconds between two looks: kubectl takes more of the machine than what it looks at."""

State = Literal["Pending", "Running", "Restarting", "Suspended", "Queued", "Succeeded", "Failed"]


@dataclass(frozen=True)
class User:
    """A user of a cluster, at home in a namespace."""

    cluster: Cluster
    namespace: str

    def elsewhere(self, namespace: str) -> User:
        """Return the same user in another namespace."""
        return User(self.cluster, namespace)

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> Result:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments, stdin=stdin, check=check)

    # -- what they do ---------------------------------------------------------------------------------------------

    def apply(self, *documents: dict[str, Any], check: bool = True) -> Result:
        """`kubectl apply -f` a file with these documents, and nothing more."""
        return self.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(documents), check=check)

    def set_suspend(self, job: str, *, suspend: bool) -> None:
        self.patch("trainjob", job, {"spec": {"suspend": suspend}})

    def patch(self, kind: str, name: str, patch: dict[str, Any]) -> None:
        self.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(patch)}")

    def tell(self, job: str, path: str) -> None:
        """Make a file in every pod of a TrainJob: how a test tells its training to go on."""
        for pod in self.pods(job):
            self.cluster.touch(self.namespace, pod["metadata"]["name"], path)

    # -- what they see --------------------------------------------------------------------------------------------

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.get(f"--namespace={self.namespace}", kind, name)
        return found

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind."""
        items = self.cluster.get(f"--namespace={self.namespace}", kind)["items"]
        return [item["metadata"]["name"] for item in items]

    def pods(self, job: str, step: str | None = None) -> list[dict[str, Any]]:
        """Return the pods of a TrainJob that are not on their way out."""
        selector = f"jobset.sigs.k8s.io/jobset-name={job}"
        if step:
            selector += f",jobset.sigs.k8s.io/replicatedjob-name={step}"
        items = self.cluster.get(f"--namespace={self.namespace}", "pods", f"--selector={selector}")["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]

    def row(self, job: str) -> dict[str, str]:
        """Return what `kubectl get trainjobs` prints about one, by column."""
        lines = self.kubectl("get", "trainjobs").stdout.splitlines()
        header = lines[0]
        starts = [i for i, letter in enumerate(header) if letter != " " and (i == 0 or header[i - 1] == " ")]
        ends = [*starts[1:], None]
        for line in lines[1:]:
            cells = {header[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}
            if cells["NAME"] == job:
                return cells
        message = f"kubectl get trainjobs shows no {job}"
        raise AssertionError(message)

    def state(self, job: str) -> State:
        """Return how a user reads that line: its STATE; a job made a moment ago has none yet."""
        return cast("State", self.row(job)["STATE"] or "Pending")

    def events(self, name: str, kind: str = "TrainJob") -> dict[str, str]:
        """Return the events that `kubectl describe` lists: reason to message, the latest of each."""
        selector = f"--field-selector=involvedObject.kind={kind},involvedObject.name={name}"
        items = self.cluster.get(f"--namespace={self.namespace}", "events", selector)["items"]
        items.sort(key=lambda item: item["lastTimestamp"] or item["eventTime"] or "")
        return {item["reason"]: item["message"] for item in items}

    def condition(self, job: str, kind: str) -> dict[str, Any] | None:
        conditions = self.get("trainjob", job).get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), None)

    def logs(self, job: str, step: str = "node", *, check: bool = True) -> list[str]:
        """Return the lines of all pods of a step, found as the documents say: by the name of the Job.

        Without `check`, of those that print already: one that is still being made is no error.
        """
        words = ("logs", f"--selector=job-name={job}-{step}-0", "--tail=-1")
        return self.kubectl(*words, check=check).stdout.splitlines()

    # -- waiting --------------------------------------------------------------------------------------------------

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        def holds_now() -> bool:
            if holds():
                return True
            time.sleep(_PAUSE)
            return False

        wait_for(what, holds_now, seconds=PATIENCE, log=self.cluster.log("trainplane"))

    def wait_state(self, job: str, wanted: State, *, via: Iterable[State] = ("Pending", "Running")) -> None:
        """Wait until kubectl shows a state; every other that is shown on the way must be one of `via`."""
        seen: list[State] = []

        def reached() -> bool:
            seen.append(self.state(job))
            return seen[-1] == wanted

        self.wait(f"{job} to be {wanted}", reached)
        assert set(seen[:-1]) <= set(via), f"{job} was shown as {dict.fromkeys(seen)}"

    def wait_events(self, job: str, *reasons: str) -> dict[str, str]:
        """Wait until these events are there, in whichever order they come; return all that are there by then.

        Events follow a moment after what they tell of, and several are written at once.
        """
        found: dict[str, str] = {}

        def there() -> bool:
            found.update(self.events(job))
            return found.keys() >= set(reasons)

        self.wait(f"events {', '.join(reasons)} of {job}", there)
        return found

    def wait_news(self, job: str, words: str) -> None:
        """Wait until an event says something; steps that follow each other closely are told by one."""
        self.wait(f"news of {job}: {words}", lambda: any(words in message for message in self.events(job).values()))

    def wait_event(self, job: str, reason: str) -> str:
        """Wait until an event is there; return its message."""
        return self.wait_events(job, reason)[reason]
