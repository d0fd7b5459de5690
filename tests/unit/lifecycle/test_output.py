"""What a sender says at its end, and what a TrainJob's status says then."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from trainplane.api.meta import Condition
from trainplane.api.trainjob import TrainJobStatus
from trainplane.lifecycle.output import Sent, Unsent, conclude, read_end, read_sent, sent_sentence

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URI = "s3://bucket/models"
DIGEST = f"sha256:{'ab' * 32}"
COMPLETE = TrainJobStatus(
    conditions=[Condition("Suspended", "False", "Resumed"), Condition("Complete", "True", "AllJobsCompleted", "done")]
)


def said(**fields: Any) -> str:
    return json.dumps({"output": "sent", "files": 3, "bytes": 5000, "digest": DIGEST, **fields})


def test_sent() -> None:
    end = read_end(said() + "\n")
    assert end == Sent(3, 5000, DIGEST)
    sent, complete = conclude(COMPLETE, end, URI, NOW).conditions[1:]
    assert (complete.type, complete.status, complete.message) == ("Complete", "True", "done"), "who shows one shows it"
    assert (sent.type, sent.status, sent.reason) == ("OutputSent", "True", "OutputSent")
    assert read_sent(sent.message) == end


@pytest.mark.parametrize("sent", [Sent(1, 1, DIGEST), Sent(0, 0, DIGEST), Sent(2**62, 2**62, DIGEST)])
def test_the_sentence_is_read_back(sent: Sent) -> None:
    assert read_sent(sent_sentence(sent, URI)) == sent


@pytest.mark.parametrize("text", ["", "sent", sent_sentence(Sent(1, 1, DIGEST), URI) + " and more", "x" * 100_000])
def test_other_sentences_are_none(text: str) -> None:
    assert read_sent(text) is None


def test_unsent_fails_the_job_with_cause_and_remedy() -> None:
    end = read_end(said(output="unsent", cause="Denied", message="the bucket refused", remedy="give it rights"))
    after = conclude(COMPLETE, end, URI, NOW).conditions
    assert [(one.type, one.status, one.reason) for one in after] == [
        ("Suspended", "False", "Resumed"),
        ("OutputSent", "False", "OutputNotSent"),
        ("Failed", "True", "OutputNotSent"),
    ]
    for word in (URI, "Denied", "the bucket refused", "give it rights"):
        assert word in after[-1].message


@pytest.mark.parametrize(
    "message",
    [
        None,
        "",
        "sent",
        "[]",
        "{}",
        "{" * 4096,
        "[" * 4096,
        said(files=-1),
        said(files=2**70),
        said(files="many"),
        said(bytes=1.5),
        said(digest="sha256:../../x"),
        said(digest=DIGEST + "\n"),
        said(output="done"),
        said(output="unsent"),
        said() + said(),
    ],
)
def test_what_cannot_be_read_is_unsent(message: str | None) -> None:
    end = read_end(message)
    assert isinstance(end, Unsent)
    assert "without a word" in end.message


def test_a_hostile_message_is_bounded_and_plain() -> None:
    text = "\x1b[2J\u202e" + "lies " * 2000
    end = read_end(said(output="unsent", cause="../x", message=text, remedy=text))
    assert isinstance(end, Unsent)
    assert end.cause == ""
    failed = conclude(COMPLETE, end, URI, NOW).conditions[-1]
    assert failed.message.isprintable()
    assert len(failed.message) < 1500
