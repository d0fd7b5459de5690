from __future__ import annotations

from typing import Any

import pytest

from trainplane.api import names
from trainplane.api.podindex import PodIndex, as_number, number_pods, read_index

INDEX = names.ANNOTATION_COMPLETION_INDEX


@pytest.mark.parametrize(
    ("labels", "annotations", "index"),
    [
        ({}, {}, PodIndex("", 0, 0)),
        ({names.LABEL_REPLICATED_JOB: "node", names.LABEL_JOB_INDEX: "2"}, {INDEX: "3"}, PodIndex("node", 2, 3)),
        ({names.LABEL_REPLICATED_JOB: "node", INDEX: "3"}, {}, PodIndex("node", 0, 3)),
        ({INDEX: "1"}, {INDEX: "3"}, PodIndex("", 0, 3)),
        ({names.LABEL_JOB_INDEX: ["x"], INDEX: "-1"}, {}, PodIndex("", 0, 0)),
    ],
)
def test_labels_and_annotations_tell_where_a_pod_stands(
    labels: dict[str, Any], annotations: dict[str, Any], index: PodIndex
) -> None:
    assert read_index(labels, annotations) == index


def test_pods_are_numbered_through_all_jobs_of_a_replicated_job() -> None:
    pods = [PodIndex("node", 1, 0), PodIndex("node", 0, 1), PodIndex("launcher", 0, 0), PodIndex("node", 1, 0)]
    assert list(number_pods(pods).items()) == [
        (PodIndex("launcher", 0, 0), 0),
        (PodIndex("node", 0, 1), 1),
        (PodIndex("node", 1, 0), 2),
    ]


@pytest.mark.parametrize(("value", "number"), [("7", 7), (7, 7), (None, 0), ("", 0), ("x", 0), ("9" * 11, 0)])
def test_what_is_no_number_is_none(value: Any, number: int) -> None:
    assert as_number(value) == number
