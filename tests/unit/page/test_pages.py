"""What stands in pages: what is asked about first, in order, for eyes and for screen readers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.client.backend import a_job
from tests.unit.client.reading.documents import condition, ended, pod, runtime, train_job
from tests.unit.page.hostile import Elements
from trainplane.client.rendering import render
from trainplane.client.types.jobs import Step
from trainplane.client.types.overview import Concern, Overview, QueueUse, QuotaUse
from trainplane.explain.facts import Facts, Line
from trainplane.page.charts import chart
from trainplane.page.fleet import fleet_page
from trainplane.page.job import job_page
from trainplane.page.jobs import jobs_page
from trainplane.page.look import look_at
from trainplane.page.nodes import nodes
from trainplane.page.origins import HIDDEN, origins, origins_of
from trainplane.page.shell import report, served

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
TRACE = ["Traceback (most recent call last):", '  File "x.py", line 1, in f', "KeyError: 'x'"]


def failed() -> Facts:
    job = train_job("fit", nodes=2, conditions=[condition("Failed", "FailedJobs", "jobset failed")])
    pods = [pod(rank, "Failed", job="fit", state=ended(1, second=30 + rank)) for rank in range(2)]
    return Facts(job, pods, logs={"node-0": [Line(line) for line in TRACE]})


def test_cause_and_remedy_stand_before_all_else() -> None:
    text = Elements(job_page(look_at(failed(), NOW))).text
    assert "PythonError" in text
    assert "KeyError: 'x'" in text
    assert text.index("What to do:") < text.index("Nodes") < text.index("Timeline") < text.index("Events")


def test_a_job_without_trouble_says_so() -> None:
    assert "Nothing is wrong that can be seen." in job_page(
        look_at(Facts(train_job("a", conditions=[condition("Complete")])), NOW)
    )


def test_lines_of_all_steps_are_merged_by_time() -> None:
    def at(second: int, text: str) -> Line:
        return Line(text, NOW + timedelta(seconds=second))

    logs = {"node-0": [at(1, "first"), Line("still first"), at(4, "last")], "node-1": [at(2, "second")]}
    look = look_at(Facts(train_job("a"), logs=logs), NOW)
    assert [line.text for line in look.lines] == ["first", "still first", "second", "last"]


def test_a_page_has_the_landmarks_and_names_that_screen_readers_need() -> None:
    page = served("fit", job_page(look_at(failed(), NOW), following=True), NOW, place="/jobs", stream="/x")
    elements = Elements(page).elements
    names = [name for name, _ in elements]
    assert [names.count(one) for one in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert ("a", {"class": "skip", "href": "#main"}) in [(n, dict(sorted(a.items()))) for n, a in elements]
    identifiers = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    labels = {a["aria-labelledby"] for n, a in elements if n == "section"}
    assert labels <= set(identifiers)
    assert names.count("table") == names.count("caption")
    assert all(a.get("aria-hidden") or a.get("aria-label") for n, a in elements if n == "svg")
    assert any(a.get("role") == "log" and a.get("tabindex") == "0" for _, a in elements)
    assert next(a for n, a in elements if n == "html")["lang"] == "en"
    assert [a["href"] for n, a in elements if n == "a" and "aria-current" in a] == ["/jobs"]


def test_a_state_is_a_word_and_a_sign_not_a_colour() -> None:
    text = Elements(jobs_page([a_job("Failed")], NOW, namespace="team")).text
    assert "✗ Failed" in text


def test_a_report_is_the_page_without_what_needs_a_server() -> None:
    page = report(look_at(failed(), NOW))
    assert "KeyError" in page
    assert not {"nav", "form", "button", "script"} & {name for name, _ in Elements(page).elements}


def test_of_many_nodes_those_that_stand_out_are_listed_first() -> None:
    steps = [Step(f"node-{rank}", "Running", f"a-node-0-{rank}") for rank in range(256)]
    steps[200] = replace(steps[200], status="Failed", reason="OOMKilled", exit_code=137)
    page = nodes(steps)
    text = Elements(page).text
    assert "256 steps: 255 Running, 1 Failed" in text
    assert text.index("node-200") < text.index("node-0")
    assert page.count("<tr") == 2 + 1 + 256


def test_jobs_are_found_by_words_newest_first() -> None:
    jobs = [a_job(name="old-fit"), a_job("Failed", name="new-fit"), a_job(name="other", queue="fit-queue")]
    page = jobs_page(jobs, NOW, namespace="team", wanted="FIT created")
    assert "2 of 3 TrainJobs: 2 Created" in page
    links = [a["href"] for n, a in Elements(page).elements if n == "a"]
    assert links == ["/jobs/other", "/jobs/old-fit"]
    assert "None has these words." in jobs_page(jobs, NOW, namespace="team", wanted="nothing")
    assert "trainplane run" in jobs_page([], NOW, namespace="team")


def test_a_chart_says_its_numbers_in_words() -> None:
    points = tuple((NOW + timedelta(seconds=at), value) for at, value in enumerate((3.0, 1.0, 2.0)))
    text = Elements(chart("loss", points)).text
    assert "from 3 at 09:00:00 to 2 at 09:00:02; least 1, most 3" in text


def test_quota_is_said_as_people_say_it() -> None:
    queue = QueueUse(
        "q", 2, 1, quotas=(QuotaUse("a100", "nvidia.com/gpu", 8, 6), QuotaUse("a100", "memory", 2**34, 2**33))
    )
    text = Elements(fleet_page(Overview(queues=(queue,)), NOW, namespace="team")).text
    assert "6 of 8" in text
    assert "8Gi of 16Gi" in text


def test_only_jobs_of_this_namespace_lead_somewhere() -> None:
    concerns = tuple(Concern(namespace, "fit", "Failed", NOW) for namespace in ("team", "others"))
    page = fleet_page(Overview(concerns=concerns), NOW, namespace="team")
    assert [a["href"] for n, a in Elements(page).elements if n == "a"] == ["/jobs/fit"]


def test_stopped_queues_come_first_then_those_with_most_waiting() -> None:
    queues = (QueueUse("calm"), QueueUse("full", 9), QueueUse("stopped", is_active=False))
    text = Elements(fleet_page(Overview(queues=queues), NOW, namespace="team")).text
    assert text.index("stopped") < text.index("full") < text.index("calm")


@pytest.fixture
def rendered() -> object:
    container = {
        "name": "node",
        "image": "torch:1",
        "command": ["secret-command"],
        "env": [{"name": "A", "value": "own"}],
    }
    job = train_job("fit", spec={"trainer": {"numNodes": 2, "image": "mine:1", "env": [{"name": "B", "value": "own"}]}})
    job.pop("status")
    return render(job, runtime(container=container))


def test_each_field_of_a_pod_says_who_wrote_it(rendered: object) -> None:
    (pods,) = origins_of(rendered)  # type: ignore[arg-type]
    told = {field.path: field for field in pods.fields}
    image = told["spec.containers[node].image"]
    assert (image.value, image.origin) == ("mine:1", "trainjob spec.trainer.image")
    assert told["spec.containers[node].env[A].name"].origin == "runtime"
    assert told["spec.containers[node].env[B].name"].value == "B"
    shown = origins([pods])
    assert "from the plugin" in shown


def test_environments_and_commands_are_named_and_not_shown(rendered: object) -> None:
    (pods,) = origins_of(rendered)  # type: ignore[arg-type]
    told = {field.path: field.value for field in pods.fields}
    assert told["spec.containers[node].env[A].value"] == HIDDEN
    assert told["spec.containers[node].command[0]"] == HIDDEN
    (without,) = origins_of(rendered, values=False)  # type: ignore[arg-type]
    assert {field.value for field in without.fields} == {""}
