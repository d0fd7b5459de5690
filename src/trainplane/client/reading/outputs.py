"""Outputs of a TrainJob: its annotation says where they go, its condition OutputSent what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.types.outputs import NOT_SENT, SENT, WAITING, JobOutput
from trainplane.lifecycle.conditions import conditions_of, finish
from trainplane.lifecycle.output import read_sent

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


def read_outputs(job: Tree) -> tuple[JobOutput, ...]:
    """Return the outputs that a TrainJob says it has."""
    uri = trees.text(job, "metadata", "annotations", names.ANNOTATION_OUTPUT)
    if uri is None:
        return ()
    told = next((one for one in conditions_of(job) if one.get("type") == names.OUTPUT_SENT), None)
    if told is None:
        return (JobOutput(uri, WAITING if finish(conditions_of(job)) is None else NOT_SENT),)
    message = str(told.get("message") or "")
    sent = read_sent(message) if told.get("status") == "True" else None
    if sent is None:
        return (JobOutput(uri, NOT_SENT, message=message),)
    return (JobOutput(uri, SENT, sent.files, sent.bytes, sent.digest),)
