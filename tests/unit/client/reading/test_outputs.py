"""What is kept of a TrainJob, as its document tells."""

from __future__ import annotations

from typing import Any

from trainplane.client.reading.outputs import read_outputs
from trainplane.client.types.outputs import JobOutput
from trainplane.lifecycle.output import Sent, sent_sentence

URI = "s3://bucket/models"
DIGEST = f"sha256:{'a' * 64}"


def job(*conditions: tuple[str, str, str], **annotations: str) -> dict[str, Any]:
    shown = [{"type": kind, "status": status, "message": message} for kind, status, message in conditions]
    return {
        "metadata": {"annotations": {"trainplane.dev/output": URI, **annotations}},
        "status": {"conditions": shown},
    }


def test_without_an_annotation_there_is_none() -> None:
    assert read_outputs({"metadata": {}}) == ()


def test_from_waiting_to_sent() -> None:
    assert read_outputs(job()) == (JobOutput(URI),)
    sent = sent_sentence(Sent(3, 70, DIGEST), URI)
    ended = job(("OutputSent", "True", sent), ("Complete", "True", ""))
    assert read_outputs(ended) == (JobOutput(URI, "Sent", 3, 70, DIGEST),)


def test_not_sent() -> None:
    (unsent,) = read_outputs(job(("OutputSent", "False", "Denied"), ("Failed", "True", "")))
    assert (unsent.state, unsent.message) == ("NotSent", "Denied")
    (never,) = read_outputs(job(("Failed", "True", "")))
    assert never.state == "NotSent", "training failed"
    (odd,) = read_outputs(job(("OutputSent", "True", "something else"), ("Complete", "True", "")))
    assert (odd.state, odd.digest) == ("NotSent", None)
