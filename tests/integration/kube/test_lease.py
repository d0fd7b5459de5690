"""Leadership on the real API server: three processes, forced hand-overs, never two leaders at one instant."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from tests.integration.kube.election import Election, Record
from tests.size import FULL, sized
from trainplane.kube.lease import LEASES

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from tests.suite import SuiteReport
    from trainplane.kube.client import Client

HANDOVERS = sized(20, full=200)
FAULTS = ("resign", "freeze", "resign", "mute", "resign", "abandon", "resign", "kill", "resign", "resign")


@pytest.mark.timeout(1800 if FULL else 300)
async def test_at_most_one_leads_at_any_instant(
    cluster: Cluster, client: Client, namespace: str, report: SuiteReport
) -> None:
    async with Election([str(cluster.kubeconfig), namespace, "lead"]) as election:
        await election.next_leader(0)
        faults = itertools.cycle(FAULTS)
        while election.handovers < HANDOVERS:
            await election.force(next(faults))
        before = len(election.record.terms)
        await asyncio.to_thread(cluster.kill, "kube-apiserver")
        await asyncio.to_thread(cluster.revive, "kube-apiserver")
        await asyncio.to_thread(cluster.wait_ready)
        await election.next_leader(before)
        lease = await client.get(LEASES, "lead", namespace)
    record, terms = election.record, election.record.terms.values()
    report.figure("handovers", election.handovers)
    report.figure("overlaps", len(record.overlaps()))
    assert record.overlaps() == []
    assert record.unaccounted() == []
    assert len({term.term for term in terms}) == len(terms), "each term has a number of its own"
    assert lease["spec"]["leaseTransitions"] >= HANDOVERS
    assert {term.identity.rstrip("0123456789-") for term in terms} == {"ann", "bo", "cy"}, "all three led"
    assert sum(bool(term.led) for term in terms) > HANDOVERS // 2, "and knew that they did"


class TestTheJudge:
    """What says that there were no overlaps must be able to say that there were."""

    def claim(self, record: Record, identity: str, at: float) -> None:
        record.hear({"claimed": identity, "sent": at, "answered": at + 0.01, "term": int(at)}, "")

    def test_two_at_once_are_found(self) -> None:
        record = Record()
        self.claim(record, "a", 10.0)
        self.claim(record, "b", 10.6)
        self.claim(record, "c", 12.0)
        assert record.overlaps() == [("a", "b")]

    def test_a_renewal_prolongs_and_a_resignation_ends(self) -> None:
        record = Record()
        self.claim(record, "a", 10.0)
        self.claim(record, "a", 10.5)
        self.claim(record, "b", 11.1)
        assert record.overlaps() == [("a", "b")]
        record.hear({"resigned": True, "at": 11.0}, "a")
        assert record.overlaps() == []

    def test_whoever_stands_again_after_another_has_a_second_term(self) -> None:
        record = Record()
        for at, identity in ((10.0, "a"), (11.0, "b"), (12.0, "a")):
            self.claim(record, identity, at)
        record.hear({"ended": "a", "led": [12.02, 12.5]}, "a")
        assert len(record.terms) == 3
        assert (record.overlaps(), record.unaccounted()) == ([], [])

    def test_whoever_claimed_last_leads_though_another_heard_of_its_claim_later(self) -> None:
        election = Election([])
        for identity, answered, term in (("bo0-0", 12.0, 2), ("ann0-3", 13.1, 1)):
            words = {"claimed": identity, "sent": answered - 0.1, "answered": answered, "term": term}
            election.record.hear(words, "")
        assert election.leader().name == "bo"

    def test_whoever_believes_to_lead_beyond_its_claim_is_found(self) -> None:
        record = Record()
        self.claim(record, "a", 10.0)
        record.hear({"ended": "a", "led": [10.02, 10.69]}, "a")
        assert record.unaccounted() == []
        record.hear({"ended": "a", "led": [10.02, 10.71]}, "a")
        assert record.unaccounted() == ["a"]
