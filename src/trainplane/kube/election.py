"""The rules of leader election without I/O: when a candidate may claim the Lease, and until when it leads.

Why at most one candidate leads at any instant:

- A leader counts from the moment *before* it sent its last successful write and leads for `renew_deadline` from there.
  A pause of its process, a slow answer or a lost one only ever makes it lead for less.
- Everybody else counts from the moment *after* they saw the Lease change and claims it no sooner than `lease_duration`
  from there. Nobody reads anybody else's clock: `renewTime` is compared with its former value, never with the time.
- A claim is a write at the resourceVersion that was read, so a renewal in between defeats it.

The order "sent, written, seen" is that of cause and effect, so the rule holds as long as two machines' clocks run at
rates that differ by less than `lease_duration / renew_deadline` (1.5 by default). Leadership that ended does not come
back: the process has to exit.

Two things stand outside the rule. A whole machine that is suspended, and its monotonic clock with it, wakes believing
that no time has passed. And a person may clear the holder of a Lease, or delete it, while it is held, or restore a
backup in which nobody held it: the old leader
learns of it at its next renewal; candidates who knew the holder of a deleted Lease still wait for it to lapse, one that
starts afterwards cannot know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from trainplane.kube.resource import Resource

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

JITTER = 0.2
"""Waits between attempts are stretched by up to this share, so that candidates do not march in step."""

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which Lease, and how patient its candidates are. All candidates of a Lease should share these.

    Attributes:
        namespace: where the Lease lives; normally the operator's own namespace.
        name: the Lease's name; one per thing to be led (a controller, a shard).
        lease_duration: whole seconds without a seen renewal after which another may claim; 15 survives an API server
            restart without a hand-over and keeps an outage after a crash short.
        renew_deadline: seconds after its last renewal at which a leader stops leading; 10 leaves five seconds, or a
            third, as the margin for clocks that run at different rates.
        retry_period: seconds between attempts to claim or renew; 2 gives a leader four tries that are refused at once
            before its deadline, and three that get no answer (`attempt_seconds`).
        release_on_stop: give the Lease back on a clean stop, so that the next leader need not wait `lease_duration`.
    """

    namespace: str
    name: str
    lease_duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    release_on_stop: bool = True

    @property
    def attempt_seconds(self) -> float:
        """Seconds that one try may take: a third of the deadline, so that two more can follow one without an answer."""
        return self.renew_deadline / 3

    def __post_init__(self) -> None:
        if not self.namespace or not self.name:
            raise ValueError("namespace and name of the Lease must both be set")
        if self.lease_duration != int(self.lease_duration) or self.lease_duration < 1:
            raise ValueError(f"lease_duration is {self.lease_duration}: the Lease stores whole seconds, at least 1")
        if self.renew_deadline >= self.lease_duration:
            raise ValueError(
                f"renew_deadline ({self.renew_deadline} s) must be shorter than lease_duration "
                f"({self.lease_duration} s): a leader has to stop before another may start"
            )
        if self.retry_period <= 0:
            raise ValueError(f"retry_period is {self.retry_period} s: it must be more than 0")
        if self.retry_period * (1 + JITTER) >= self.renew_deadline:
            raise ValueError(
                f"retry_period ({self.retry_period} s) stretched by {JITTER:.0%} must be shorter than renew_deadline "
                f"({self.renew_deadline} s): a leader needs at least one try before its deadline"
            )


@dataclass(frozen=True, slots=True)
class Claim:
    """A write that would make, or keep, the candidate the holder. `sent_at` is when it was decided."""

    body: Tree
    new: bool
    sent_at: float


@dataclass(slots=True)
class ElectionRules:
    """What one candidate knows and may do. `now` is always its own monotonic clock, `wall` its own idea of UTC.

    The caller reads the Lease while `needs_read`, tells what it `saw`, asks for a `claim`, writes it, and tells that
    it `wrote` or that the attempt `failed`, which covers conflicts and lost answers alike.
    """

    identity: str
    settings: LeaseSettings
    phase: Literal["following", "leading", "over"] = "following"
    deadline: float = float("-inf")
    needs_read: bool = True
    claimed: bool = False
    """Whether a claim was sent and nobody knows yet what came of it."""
    _lease: Tree | None = None
    _held_until: float = float("-inf")
    _renewed: datetime = field(default=datetime.min.replace(tzinfo=UTC))

    @property
    def holder(self) -> str:
        """The identity that the Lease named when last seen; empty when none did."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    @property
    def term(self) -> int:
        """How often the Lease has changed hands, as last seen; it grows with every new leader."""
        return int(_spec(self._lease).get("leaseTransitions") or 0)

    def is_leader(self, now: float) -> bool:
        """Tell whether this candidate leads at this instant."""
        return self.phase == "leading" and now < self.deadline

    def lapse(self, now: float) -> bool:
        """End a leadership whose deadline has passed; tell whether the candidacy is over."""
        if self.phase == "leading" and now >= self.deadline:
            self.phase = "over"
        return self.phase == "over"

    def saw(self, lease: Tree | None, now: float) -> None:
        """Take in a read; None says that there is no Lease. `now` is taken after the answer came."""
        if lease is not None and _spec(lease) != _spec(self._lease):
            duration = _spec(lease).get("leaseDurationSeconds") or self.settings.lease_duration
            self._held_until = now + duration
        self._lease = lease if lease is not None or self._lease is None else _orphan(self._lease)
        self.needs_read = False
        if self.phase == "leading" and (lease is None or self.holder != self.identity):
            self.phase = "over"

    def claim(self, now: float, wall: datetime) -> Claim | None:
        """Return the write to send now, or None while another holds the Lease or the candidacy is over.

        A follower reads again before its next claim whatever comes of this one.
        """
        if self.needs_read or self.lapse(now):
            return None
        self.needs_read = self.phase == "following"
        if self.holder not in {"", self.identity} and now < self._held_until:
            return None
        missing = self._lease is None or "resourceVersion" not in self._lease["metadata"]
        self.claimed = True
        return Claim(self._claimed(wall), missing, now)

    def wrote(self, claim: Claim, lease: Tree, now: float) -> None:
        """Take in the server's yes to a claim. An answer later than the claim's own deadline changes nothing."""
        self.claimed = False
        if self.lapse(now):
            return
        self._lease = lease
        self._held_until = now + self.settings.lease_duration
        deadline = claim.sent_at + self.settings.renew_deadline
        if now < deadline:
            self.phase, self.deadline, self.needs_read = "leading", deadline, False

    def failed(self) -> None:
        """Take in that a read or a write went wrong, or that nobody knows whether it did: read before anything."""
        self.needs_read = True

    def resign(self, wall: datetime) -> Tree | None:
        """Stop leading at once; return the write that gives the Lease back, or None if it is not ours to give."""
        held = self.phase == "leading" and self.holder == self.identity and self._lease is not None
        self.phase = "over"
        return self._given_back(wall) if held else None

    def withdraw(self, lease: Tree, wall: datetime) -> Tree | None:
        """Stop standing; return the write that gives back the Lease just read, or None if it is not ours."""
        self.phase, self._lease = "over", lease
        return self._given_back(wall) if self.holder == self.identity else None

    def _given_back(self, wall: datetime) -> Tree:
        return self._with(holderIdentity="", leaseDurationSeconds=1, renewTime=self._micro(wall))

    def _claimed(self, wall: datetime) -> Tree:
        stamp = self._micro(wall)
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.settings.lease_duration),
            "renewTime": stamp,
        }
        if self.holder != self.identity:
            spec["acquireTime"] = stamp
            spec["leaseTransitions"] = self.term + (self._lease is not None)
        return self._with(**spec)

    def _with(self, **spec: Any) -> Tree:
        if self._lease is None:
            metadata = {"name": self.settings.name, "namespace": self.settings.namespace}
            return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        return {**self._lease, "spec": {**_spec(self._lease), **spec}}

    def _micro(self, wall: datetime) -> str:
        """Return a MicroTime that differs from the last one even if the wall clock stood still or went back."""
        self._renewed = max(wall.astimezone(UTC), self._renewed + timedelta(microseconds=1))
        return self._renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(lease: Tree | None) -> Tree:
    return {} if lease is None else lease.get("spec") or {}


def _orphan(lease: Tree) -> Tree:
    """Return a deleted Lease as one to create anew: who held it is remembered, so that it is waited for."""
    metadata = {key: lease["metadata"][key] for key in ("name", "namespace") if key in lease["metadata"]}
    return {**lease, "metadata": metadata}
