"""What tenants, pods and clusters write: names, labels, messages, lines, metrics. None of it becomes markup."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.unit.client.backend import a_job, a_runtime
from tests.unit.client.reading.documents import condition, ended, event, pod, train_job, waiting
from tests.unit.page.hostile import MARKUP, Elements, dangers
from trainplane.client.types.jobs import Progress
from trainplane.client.types.overview import Concern, DeviceUse, Overview, QueueUse, QuotaUse, WorkerState
from trainplane.explain.facts import Facts, Line
from trainplane.page.charts import chart
from trainplane.page.fleet import fleet_page
from trainplane.page.job import job_page
from trainplane.page.jobs import jobs_page
from trainplane.page.look import handed_on, look_at
from trainplane.page.markup import tag
from trainplane.page.nodes import nodes
from trainplane.page.origins import Field, PodOrigins
from trainplane.page.shell import report, served

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)


def hostile_facts(text: str) -> Facts:
    job = train_job(
        text,
        conditions=[condition("Failed", text, text)],
        metadata={"labels": {"kueue.x-k8s.io/queue-name": text}, "annotations": {text: text}},
        spec={"runtimeRef": {"name": text}},
        status={
            "trainerStatus": {"progressPercentage": 3, "metrics": [{"name": text, "value": text}]},
            "timeline": [{"stage": "Running", "time": "2026-11-15T05:00:01Z", "reason": text}],
        },
    )
    pods = [
        pod(0, "Failed", job=text, state=ended(1, reason=text, message=text)),
        pod(1, "Pending", job=text, state=waiting(text, text)),
    ]
    events = [event("TrainJob", text, text, text), event("Pod", text, text, text, type=text)]
    logs = {text: [Line(text, NOW)], "node-0": [Line(text, NOW)]}
    return Facts(job, pods, events, logs=logs, unread=[text])


@pytest.mark.parametrize("text", MARKUP)
def test_what_others_wrote_stays_text_in_the_page_of_a_job(text: str) -> None:
    known = a_job(runtime=a_runtime(name=text), metrics_history={text: ((NOW, 1.0), (NOW + timedelta(1), 2.0))})
    origins = [PodOrigins(text, (Field(text, text, text),))]
    look = look_at(hostile_facts(text), NOW, known=known, origins=origins)
    assert dangers(served(text, job_page(look, following=True), NOW, stream=f"/jobs/{text}")) == []
    assert dangers(report(look)) == []


@pytest.mark.parametrize("text", MARKUP)
def test_what_others_wrote_stays_text_in_lists(text: str) -> None:
    job = a_job(name=text, status=text, runtime=a_runtime(name=text), queue=text, cluster=text, labels={text: text})
    assert dangers(served(text, jobs_page([job], NOW, namespace=text, wanted=text), NOW)) == []
    seen = Overview(
        jobs={text: 1},
        namespace=text,
        concerns=(Concern(text, text, text, NOW, text, text),),
        queues=(QueueUse(text, why=text, cohort=text, quotas=(QuotaUse(text, text, 0, math.inf),)),),
        workers=(WorkerState(text, is_connected=False, why=text),),
        devices=(DeviceUse(text, 1),),
        unread={text: text},
    )
    assert dangers(served(text, fleet_page(seen, NOW, namespace=text), NOW)) == []


def test_the_reader_of_these_tests_sees_danger() -> None:
    assert dangers("<p onclick=x>") == ["p onclick=x"]
    assert dangers("<img>") == ["element img"]
    assert dangers('<a href="javascript:x">') == ["a href=javascript:x"]
    assert dangers("<a href=//elsewhere>") == ["a href=//elsewhere"]
    assert dangers("<script>alert(1)</script>") == ["a script of somebody's"]


def test_what_steers_terminals_or_turns_writing_is_not_in_a_page() -> None:
    page = report(look_at(hostile_facts("a\x1b[31mb\u202ec\x00d"), NOW))
    assert not {"\x1b", "\u202e", "\x00"} & set(page)
    assert "ab c d" in page


def test_credentials_are_in_no_page() -> None:
    secret = "hf_abcdefghijklmnopqrstuvwxyz"
    look = look_at(hostile_facts(f"login with token={secret}"), NOW)
    assert secret not in report(look)
    assert secret not in job_page(look)
    assert secret not in tag("p", "x", title=f"Authorization: Bearer {secret}")


def test_a_report_has_nothing_that_a_bundle_has_not() -> None:
    job = train_job("a", metadata={"annotations": {"mine": "own-annotation"}, "labels": {"mine": "own-label"}})
    own = pod(0, env={"WANDB_ENTITY": "own-environment"}, annotations={"mine": "own-annotation"})
    own["spec"]["containers"][0]["command"] = ["own-command"]
    page = report(look_at(handed_on(Facts(job, [own])), NOW))
    assert "own-" not in page
    assert "a-node-0-0-abcde" in page


def test_a_report_loads_nothing_and_runs_nothing() -> None:
    page = report(look_at(hostile_facts("a"), NOW))
    tags = {name for name, _ in Elements(page).elements}
    assert not tags & {"script", "link", "img", "iframe"}
    assert "default-src 'none'" in page
    assert "://" not in page


def test_an_event_of_a_megabyte_is_cut() -> None:
    facts = Facts(train_job("a"), events=[event("TrainJob", "a", "Long", "word " * 200_000) for _ in range(3)])
    assert len(job_page(look_at(facts, NOW))) < 20_000


def test_thousands_of_everything_are_bounded_and_counted() -> None:
    events = [event("TrainJob", "a", f"R{number}") for number in range(5000)]
    logs = {f"node-{rank}": [Line(f"line {number}") for number in range(300)] for rank in range(64)}
    pods = [pod(rank) for rank in range(3000)]
    page = job_page(look_at(Facts(train_job("a", nodes=3000), pods, events, logs=logs), NOW))
    assert "and 4800 earlier events" in page
    assert "and 1976 more steps" in page
    assert page.count("line ") == 200
    jobs = [a_job(name=f"job-{number}") for number in range(1500)]
    listed = jobs_page(jobs, NOW, namespace="team")
    assert listed.count("<tr") == 1001
    assert "and 500 older ones" in listed


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0])
def test_no_metric_breaks_its_picture(value: float) -> None:
    points = tuple((NOW + timedelta(seconds=at), one) for at, one in enumerate((1.0, value, -1e308, 1e308)))
    shown = chart("m", points)
    (line,) = [attributes for name, attributes in Elements(shown).elements if name == "polyline"]
    numbers = [float(one) for pair in line["points"].split() for one in pair.split(",")]
    assert all(0 <= one <= 320 for one in numbers)
    assert "nan" not in line["points"]


def test_a_metric_without_any_number_says_so() -> None:
    assert "no number was reported" in chart("m", ((NOW, math.nan),))


def test_many_metrics_are_bounded() -> None:
    job = a_job(progress=Progress(metrics={f"m{number}": "1" for number in range(256)}))
    look = look_at(Facts(train_job("a")), NOW)
    page: Any = job_page(replace(look, job=job))
    assert page.count("<figure") == 24
    assert "and 232 more metrics" in page


def test_two_steps_of_one_name_do_not_spoil_the_page() -> None:
    step = a_job().steps[0]
    assert nodes([step, step]).count("node-0") >= 2
