"""docs/progress.md: its example runs as it stands, and its tables say what the code does."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.fenced import blocks
from trainplane.cli.explain import show_timeline
from trainplane.cli.output import Output
from trainplane.explain.timeline import kept_timeline, spans
from trainplane.lifecycle.timeline import AGAIN, ENDS, MOST_AGAIN, ONCE
from trainplane.operator.progress.callers import REMEMBERED_SECONDS
from trainplane.operator.progress.history import INTERVAL as HISTORY_SECONDS
from trainplane.operator.progress.refusal import REASONS
from trainplane.operator.progress.report import BODY_LIMIT, read_report
from trainplane.operator.progress.reports import INTERVAL
from trainplane.operator.progress.series import BYTES, METRICS, POINTS

PAGE = Path(__file__).resolve().parents[3] / "docs/progress.md"


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    (code,), (said, _) = blocks(PAGE, "python"), blocks(PAGE, "text")
    (tmp_path / "page.py").write_text(code)
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "TRAINPLANE_PROGRESS": "off"}
    command = [sys.executable, "page.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == said, done.stderr


def test_a_timeline_is_drawn_as_the_page_shows_it() -> None:
    _, drawn = blocks(PAGE, "text")
    rows = [re.fullmatch(r"  (\w+) ?(\d*) +(\S+) (\S+Z) +\+\S+ *▇* *(.*)", line) for line in drawn.splitlines()]
    entries = [
        {"stage": row[1], "number": int(row[2] or 0), "time": f"{row[3]}T{row[4]}", "reason": row[5]}
        for row in rows
        if row is not None
    ]
    job = {"metadata": {"creationTimestamp": entries[0]["time"]}, "status": {"timeline": entries}}
    out = io.StringIO()
    show_timeline(spans(kept_timeline(job), job), Output(out, width=120))
    assert out.getvalue() == f"\n{drawn}"


def test_the_stages_of_the_page_are_the_codes() -> None:
    text = PAGE.read_text()
    for stage in (*ONCE, *AGAIN, *ENDS):
        assert re.search(rf"^\| [\w, ]*\b{stage}\b", text, re.MULTILINE), stage
    assert f"the newest {MOST_AGAIN}".replace("8", "eight") in " ".join(text.split())


def test_the_body_of_the_page_is_taken() -> None:
    (body,) = blocks(PAGE, "json")
    assert read_report(body.encode()) is not None


def test_the_figures_of_the_page_are_the_codes() -> None:
    text = " ".join(PAGE.read_text().split())
    assert (INTERVAL, REMEMBERED_SECONDS, HISTORY_SECONDS, BODY_LIMIT) == (10, 60, 60, 64 << 10)
    assert f"at most {POINTS} points of each of the first {METRICS} metrics" in text
    assert f"{BYTES >> 10} KB in all" in text
    for code in REASONS.keys() - {500}:
        assert str(code) in text, code
