"""Types as HTML: whole, escaped, with what people look for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.backend import CREATED_AT, a_job, a_runtime
from tests.unit.client.display import examples
from tests.unit.client.display.examples import (
    ANSWER,
    DESCRIPTION,
    EVENTS,
    EVIL,
    FAILED,
    HELD,
    LARGE,
    NOW,
    RUNNING,
    STARTING,
    TUNE,
)
from tests.unit.client.display.markup import read
from trainplane.client.display import cards, elements
from trainplane.client.types.descriptions import Advice, Description, QueueAnswer
from trainplane.client.types.jobs import Cause, Event, Progress

ALL: list[Any] = [RUNNING, STARTING, FAILED, HELD, LARGE, *RUNNING.steps, FAILED.cause, *EVENTS, DESCRIPTION, TUNE]


@pytest.mark.parametrize("one", ALL, ids=lambda one: type(one).__name__)
def test_every_type_shows_itself_with_nothing_from_outside(one: Any) -> None:
    seen = read(one._repr_html_())
    assert seen.tags <= {"div", "span", "b", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "pre", "ul", "li"}  # fmt: skip # noqa: E501 a list of words
    assert not seen.attributes & {"src", "href", "class", "onclick"}
    assert repr(one).startswith(type(one).__name__ + "("), "the representation for programs stays"


@pytest.mark.parametrize(
    "html",
    [
        cards.job_card(examples.evil_job(), NOW),
        cards.jobs_list([examples.evil_job()], NOW),
        cards.event_card(Event(EVIL, EVIL, EVIL, EVIL, CREATED_AT, EVIL, 3, EVIL)),
        cards.runtime_card(examples.evil_job().runtime),
        cards.description_card(
            Description(
                examples.evil_job(),
                [Event(EVIL, EVIL, EVIL, EVIL, CREATED_AT)],
                QueueAnswer(EVIL, 1, 2, (Advice(EVIL, EVIL, True),)),
            ),
            NOW,
        ),
    ],
    ids=["job", "jobs", "event", "runtime", "description"],
)
def test_what_a_job_says_never_becomes_markup(html: str) -> None:
    seen = read(html)
    assert "script" not in seen.tags
    assert "<script>alert('x')</script>&\"red" in seen.text, "readable as it was written, without terminal sequences"
    assert "\x1b" not in html


def test_a_running_job_shows_how_far_it_is_and_where() -> None:
    seen = read(cards.job_card(RUNNING, NOW))
    for part in ("Running", "mnist", "2 nodes", "queue team-queue", "on east", "7 min ago", "machine-1", "4 gpu"):
        assert part in seen.text, part
    assert "45 % done, about 3 min left, loss 0.12" in seen.text
    assert 'aria-valuenow="45"' in cards.job_card(RUNNING, NOW)


def test_a_job_that_says_nothing_of_itself_shows_its_nodes() -> None:
    html = cards.job_card(STARTING, NOW)
    assert 'aria-valuenow="25"' in html
    assert "1 of 4 nodes run" in read(html).text
    assert "ImagePullBackOff: there is no such image" in read(html).text


def test_a_failed_job_shows_why_and_its_last_lines() -> None:
    html = cards.job_card(FAILED, NOW)
    text = read(html).text
    assert "OOMKilled in node-1 (exit code 137)" in text
    assert "it took more than 2Gi" in text
    assert "epoch 1\nKilled" in text
    assert "took 3 min" in text
    assert elements.RED in html
    assert "progressbar" not in html, "nothing goes on any more"


def test_a_reason_with_a_colon_is_not_torn_apart() -> None:
    seen = read(cards.cause_card(Cause("Error", "a: b: c", "node-0", 1)))
    assert "".join(seen.texts) == "Error in node-0 (exit code 1): a: b: c"


@pytest.mark.parametrize(("told", "shown"), [(-5, 0), (0, 0), (250, 100)])
def test_a_training_that_miscounts_does_not_break_the_bar(told: int, shown: int) -> None:
    html = cards.job_card(a_job("Running", progress=Progress(told)), NOW)
    assert f'aria-valuenow="{shown}"' in html


def test_a_complete_job_is_done_whatever_it_said_last() -> None:
    assert 'aria-valuenow="100"' in cards.job_card(a_job("Complete", progress=Progress(97)), NOW)


def test_of_a_large_job_the_card_shows_what_stands_out() -> None:
    text = read(cards.job_card(LARGE, NOW)).text
    assert [f"node-{i}" in text for i in (5, 104, 203)] == [True] * 3
    assert "node-7 " not in text
    assert "and 297 more steps: 297 Running" in text
    alike = a_job("Running", num_nodes=40, steps=[examples.node(i) for i in range(40)])
    assert "and 24 more steps: 24 Running" in read(cards.job_card(alike, NOW)).text


def test_a_description_shows_the_queue_and_the_events() -> None:
    text = read(cards.description_card(DESCRIPTION, NOW)).text
    assert "It needs 8 GPUs, and 5 are free. (number 1 of 4 in line)" in text
    assert "starts it now: " in text
    assert "client.scale_job('held', 5)" in text
    assert "bob/train holds 4 GPUs." in text
    assert "FailedScheduling" in text
    many = Description(HELD, EVENTS * 20, ANSWER)
    assert "15 of 40 events" in read(cards.description_card(many, NOW)).text


def test_a_list_that_no_browser_should_show_is_cut_and_says_so() -> None:
    text = read(cards.jobs_list([a_job(name=f"job-{i:03}") for i in range(103)], NOW)).text
    assert "and 3 older TrainJobs" in text
    assert "job-002" not in text
    assert "job-102" in text
    assert "more runtimes" not in read(cards.runtimes_list([a_runtime()] * 100)).text


@pytest.mark.parametrize("colour", sorted({*elements.COLOURS.values()}))
def test_white_words_can_be_read_on_every_colour(colour: str) -> None:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    assert 1.05 / (luminance + 0.05) >= 4.5


def test_only_what_is_filled_has_a_colour_of_text() -> None:
    html = "".join(one._repr_html_() for one in ALL)
    for style in re.findall(r'style="([^"]*)"', html):
        own = re.search(r"(?<!-)color:(?!inherit)", style)
        assert not own or "background:" in style, f"unreadable on a dark page: {style}"


def test_the_line_that_tells_it_stands_in_place_of_see_its_log() -> None:
    cause = Cause("Error", "it ended with an error: see its log", "node-1", 1, ("Traceback", "ValueError: no data", ""))
    assert "<b>Error in node-1 (exit code 1)</b>: ValueError: no data" in str(cards.cause_card(cause))
    assert "see its log" in str(cards.cause_card(replace(cause, log_tail=())))
    killed = replace(cause, reason="OOMKilled", message="it used more than its limit of 2Gi memory")
    assert "2Gi memory" in str(cards.cause_card(killed)), "what is known better than the log says"
