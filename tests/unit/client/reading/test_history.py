"""Points of metrics, from an object that anybody may have written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from trainplane.client.reading.history import read_history
from trainplane.operator.progress.series import Series


def of(text: Any) -> dict[str, Any]:
    return {"data": {"metrics": text}}


def test_what_the_operator_writes_is_read() -> None:
    series = Series()
    for number in range(3):
        series.add(1_000_000 + number * 10, {"loss": str(0.5 / (number + 1)), "name": "x"})
    points = read_history(of(series.encode().decode()))
    assert points["loss"][0] == (datetime.fromtimestamp(1_000_000, UTC), 0.5)
    assert len(points["loss"]) == 3
    assert points.keys() == {"loss"}


@pytest.mark.parametrize(
    "text",
    [
        *(None, 5, "", "{", "[]", "null", "{}", '{"metrics": []}', '{"metrics": {"a": 1}}', '{"metrics": {"a": [1]}}'),
        *(
            '{"since": 0, "metrics": {"a": [[1e300, 1]]}}',
            '{"since": 0, "metrics": {"a": [["x", 1], [1, null], [1, 2, 3]]}}',
        ),
        *('{"since": 0, "metrics": {"a": [[1, NaN], [1, Infinity]]}}', "[" * 50_000),
        json.dumps({"since": 0, "metrics": {"a": [[1, 2]] * 20_000}}),
    ],
)
def test_what_is_no_points_is_left_out(text: Any) -> None:
    assert read_history(of(text)) == {}


def test_no_object_has_none() -> None:
    assert read_history({}) == {}
