"""A TrainJob on a screen: what matters is there at every size, and nobody else writes on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.live.drawn import drawn
from tests.unit.cli.live.facts import HOSTILE, NOW, SIZES, a_hostile_training, a_training
from trainplane.cli.live.cells import ASCII
from trainplane.cli.live.job import job_view
from trainplane.client.types.descriptions import Advice, QueueAnswer
from trainplane.client.types.jobs import Cause, Progress, Step
from trainplane.explain.explanation import Explanation

if TYPE_CHECKING:
    from trainplane.client.types.observation import Observation


def shown(seen: Observation, width: int = 80, height: int = 24) -> str:
    return drawn(job_view(seen, NOW, width, height, note="Ctrl-C leaves"), width, height)


@pytest.mark.parametrize("nodes", [2, 8, 256])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_all_that_matters_is_on_the_screen(nodes: int, width: int, height: int) -> None:
    text = shown(a_training(nodes), width, height)
    for told in (
        "mnist  ■ Running  32 min",
        "40 %, about 13 min left, said 5 s ago",
        "Restarted 1 +4 min, 7 min ago",
        "✗ 1 failed",
        "2 restarts",
        "metrics over 19 min",
        "loss",
        "0.1235",
        "accuracy",
        f"✗ node-{nodes - 1}",
        "OOMKilled (exit code 137) | torch.Out",
        "Ctrl-C leaves",
    ):
        assert told in text
    assert text.count("■") >= nodes - 2


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("nodes", [2, 256, 5000])
def test_it_fits_at_every_size(nodes: int, width: int, height: int) -> None:
    assert "mnist" in shown(a_training(nodes), width, height)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_others_write_the_screen_is_ours(text: str, width: int, height: int) -> None:
    shown(a_hostile_training(text), width, height)


def test_markup_of_others_is_text() -> None:
    assert "[bold red]markup[/]" in shown(a_hostile_training(HOSTILE[1]))


def test_those_in_trouble_come_first_and_the_rest_is_counted() -> None:
    rows = shown(a_training(256)).splitlines()
    begin = next(n for n, row in enumerate(rows) if row.startswith("steps"))
    assert "more)" in rows[begin]
    assert rows[begin + 1].startswith("  ✗ node-255")
    assert rows[begin + 2].startswith("  ▣ node-1 ")
    assert "1 restart | step 118: loss 0.1235" in rows[begin + 2]


def test_a_queued_job_says_its_place_why_and_what_would_start_it_now() -> None:
    answer = QueueAnswer(
        "It needs 8 nvidia.com/gpu, and 5 are free.",
        3,
        12,
        suggestions=(Advice("Wait."), Advice("LocalQueue night has room.", "kubectl label trainjob clip", now=True)),
    )
    text = shown(replace(a_training(2, "Suspended"), queue=answer))
    assert "□ Place 3 of 12 in line. It needs 8 nvidia.com/gpu, and 5 are free." in text
    assert "→ LocalQueue night has room. kubectl label trainjob clip" in text
    assert "Wait." not in text


def test_an_explanation_says_what_is_the_matter_and_what_to_do() -> None:
    told = Explanation("Running", "mnist stands still: " + "word " * 60, cause="Stalled", remedy="look at node-1")
    rows = shown(a_training(2, explanation=told)).splitlines()
    assert rows[1].startswith("✗ mnist stands still:")
    assert rows[2].startswith("  word")
    assert rows[2].endswith("…")
    assert rows[3] == "→ look at node-1"


def test_a_cause_is_told_where_there_is_no_explanation() -> None:
    text = shown(a_training(2, "Created", cause=Cause("ImagePullBackOff", "no such image", "node-0")))
    assert "□ ImagePullBackOff in node-0: no such image" in text


def test_a_job_that_starts_says_what_it_waits_for() -> None:
    seen = a_training(2, "Created")
    seen.job.steps = [Step("node-0", "Running", "a"), Step("node-1", "Pending", "b", reason="ContainerCreating")]
    assert "□ 1 of 2 nodes run; node-1: ContainerCreating" in shown(seen)
    seen.job.steps = []
    assert "□ it has no pods yet" in shown(seen)


def test_what_is_not_reported_is_not_drawn() -> None:
    text = shown(a_training(2, progress=None, metrics={}, timeline=(), lines={}))
    assert "progress" not in text
    assert "metrics" not in text
    assert "stages" not in text


def test_a_training_without_a_percentage_still_says_when_it_reported() -> None:
    text = shown(a_training(2, progress=Progress(None, None, {"note": "warming up"}, NOW), metrics={}))
    assert "progress  said 0 s ago" in text
    assert "warming up" in text, "a metric that is no number is told and not drawn"


def test_metrics_that_do_not_fit_are_counted() -> None:
    seen = a_training(2)
    many = {f"metric-{n}": seen.metrics["loss"] for n in range(12)}
    assert "more)" in next(row for row in shown(replace(seen, metrics=many), 80, 16).splitlines() if "metrics" in row)


def test_a_job_that_was_deleted_or_is_over_says_so() -> None:
    assert "Deleted" in shown(a_training(2, is_deleted=True)).splitlines()[0]
    text = shown(a_training(2, "Complete"))
    assert "✓ Complete" in text
    assert "left" not in text.replace("Ctrl-C leaves", "")


def test_logs_that_may_not_be_read_are_told() -> None:
    assert "logs: you may not get pods/log" in shown(
        a_training(2, unread={"logs": "you may not get pods/log"}), 120, 30
    )


def test_a_terminal_without_signs_gets_letters() -> None:
    lines = job_view(a_training(256), NOW, 80, 24, ASCII)
    assert drawn(lines, 80, 24).isascii()


def test_a_metric_that_was_reported_once_takes_one_row() -> None:
    seen = a_training(2)
    rows = shown(replace(seen, metrics={"loss": seen.metrics["loss"][:1]})).splitlines()
    begin = next(n for n, row in enumerate(rows) if row.startswith("metrics"))
    assert rows[begin] == "metrics"
    assert rows[begin + 1].startswith("  loss      0.1235")
    assert rows[begin + 2].startswith("  accuracy  0.91"), "reported, and not yet drawn"
