"""Remarks of ours among kept lines."""

from __future__ import annotations

from tests.unit.hub.kubelet import START, line
from trainplane.hub.logarchive.lines import NOTE, note, text_of
from trainplane.kube.containerlogs import nanoseconds


def test_text_is_what_was_printed() -> None:
    assert text_of(b"2026-11-15T05:11:08.123456789Z epoch 3  ") == b"epoch 3  "


def test_a_remark_carries_the_time_of_its_line_and_is_told_apart() -> None:
    remark = note(line(START, "epoch"), "lines may be missing")
    assert remark.startswith(NOTE)
    assert nanoseconds(remark) is None
    assert nanoseconds(remark.removeprefix(NOTE)) == START
    assert text_of(remark) == b"[trainplane] lines may be missing"
