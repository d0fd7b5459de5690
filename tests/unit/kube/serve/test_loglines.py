from __future__ import annotations

import json
import logging
import sys

import pytest

from trainplane.kube import loglines
from trainplane.kube.resource import Key


def record(**extra: object) -> logging.LogRecord:
    return logging.getLogger("trainplane.test").makeRecord(
        "trainplane.test", logging.WARNING, "f", 1, "reconcile failed", (), None, extra=extra
    )


def test_a_line_is_one_object_with_the_message_and_its_keys() -> None:
    line = json.loads(loglines.JsonLines().format(record(key=Key("ns", "job"), retry_seconds=0.2)))
    assert line.pop("ts").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "trainplane.test",
        "msg": "reconcile failed",
        "key": ["ns", "job"],
        "retry_seconds": 0.2,
    }


def test_what_json_does_not_know_becomes_text() -> None:
    assert json.loads(loglines.JsonLines().format(record(error=ValueError("why"))))["error"] == "why"


def test_an_error_comes_with_its_trace() -> None:
    one = record()
    try:
        raise ValueError("why")  # noqa: TRY301 a trace is wanted
    except ValueError:
        one.exc_info = sys.exc_info()
    line = json.loads(loglines.JsonLines().format(one))
    assert line["error"] == "ValueError: why"
    assert "Traceback" in line["stacktrace"]
    assert "Traceback" in loglines.Words().format(one)


def test_words() -> None:
    text = loglines.Words().format(record(key="ns/job"))
    assert text.endswith("WARNING reconcile failed key=ns/job")


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("info", logging.INFO),
        ("debug", logging.DEBUG),
        ("error", logging.ERROR),
        ("2", logging.INFO),
        ("5", logging.DEBUG),
    ],
)
def test_levels(text: str, level: int) -> None:
    assert loglines.level_of(text) == level


def test_a_level_that_is_none() -> None:
    with pytest.raises(ValueError, match="loud"):
        loglines.level_of("loud")
