"""What the SDK says of a training: its state, steps, logs and events."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fleet.api import RefusedError
from tests.sdk.official import documents
from tests.sdk.official.admin import PATIENCE
from tests.sdk.official.cells import WAIT, train_held
from tests.sdk.official.probe import Observed, probe, row

if TYPE_CHECKING:
    from tests.sdk.official.admin import Admin
    from tests.sdk.official.side import Side

LIFE = {"created": "created JobSet", "scheduled": "a machine", "started": "pods are ready", "completed": "Completed"}
"""The operator's news of a training as it goes on, by the words that tell it: one event may tell several steps."""
SILENCE = 15.0
"""Seconds after which news that has not come is taken not to come."""
_CREATION_FAILED = "TrainJobResourcesCreationFailed"


FOLLOW = """
lines = client.get_job_logs(name, follow=True)
first = next(lines)
open(mark, "w").close()
[first, *lines]
"""
"""Follows a log, and makes a file when its first line is there."""
SHOWN = f"shown = []\n{WAIT[:-1]}, callbacks=[lambda job: shown.append(job.status)])\nshown"


@probe(
    row("A.4.5", "a training is shown as", "Running, then Complete"),
    row("A.4.5", "conditions before its end", "none"),
    row("A.1", "`get_job_logs(follow=True)`, begun while it runs", "every line, to the end"),
    row("A.4.5", "the operator's news in `get_job_events()`", "none", ", ".join(LIFE)),
)
def follows_a_training(side: Side) -> Observed:
    name = "life"
    side.sdk.run(train_held(), name=name, runtime="plain")
    shown = side.sdk.run(SHOWN, name=name, status=["Running"])
    conditions = side.admin.conditions(name)
    # So that the news of its start is older than that of its end: the SDK puts news in order by the second.
    side.admin.wait(f"{name} to be counted ready", lambda: side.admin.counts_ready(name))
    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "begun"
        following = side.sdk.begin(FOLLOW, name=name, mark=str(mark))
        side.admin.wait("the first line", mark.exists)
        side.admin.tell(name, "/tmp/go")
        shown += side.sdk.run(SHOWN, name=name, status=["Complete"])
        lines = following.result(PATIENCE).value
    assert shown == sorted(shown, key=["Created", "Running", "Complete"].index)
    _await_news(side, name, "Completed")
    if side.name == "ours":
        side.admin.wait(f"all news of {name}", lambda: all(words in str(_news(side, name)) for words in LIFE.values()))
    return (
        ", then ".join(status for status in dict.fromkeys(shown) if status != "Created"),
        str(conditions or "none"),
        "every line, to the end" if lines == ["begun", "done"] else str(lines),
        ", ".join(step for step, words in LIFE.items() if words in str(_news(side, name))) or "none",
    )


@probe(
    row("A.4.5", "while suspended (as Kueue does), a training is shown as", "Created"),
    row("A.4.5", "resumed, with its pods running", "Created", "Running"),
    row("A.4.5", '`wait_for_job_status(status={"Running"})` of it', "TimeoutError", "returns"),
    row("A.4.5", "resumed, where `ActiveDeadlineSeconds` counts from the resume", "Created"),
)
def resumes_a_training(side: Side) -> Observed:
    jobs = {"resumed": "", "resumed-timed": "ActiveDeadlineSeconds(seconds=600)"}
    for name, options in jobs.items():
        side.sdk.run(train_held(options), name=name, runtime="plain")
    for name in jobs:
        side.admin.wait_phases(name, "Running")
        side.admin.set_suspend(name, suspend=True)
    for name in jobs:
        side.admin.wait_phases(name)
        side.admin.wait(f"{name} to say so", partial(_says, side.admin, name, "True"))
    held = side.sdk.run("client.get_job(name).status", name="resumed")
    for name in jobs:
        side.admin.set_suspend(name, suspend=False)
    for name in jobs:
        side.admin.wait_phases(name, "Running")
        side.admin.wait(f"{name} to be counted ready", partial(side.admin.counts_ready, name))
    shown = {name: side.sdk.run("client.get_job(name).status", name=name) for name in jobs}
    wait = 'client.wait_for_job_status(name, status={"Running"}, timeout=3, polling_interval=1)'
    waited = side.sdk.outcome(wait, name="resumed")
    side.admin.end(*jobs)
    returns = waited.error.type if waited.error else "returns"
    return (held, shown["resumed"], returns, shown["resumed-timed"])


@probe(
    row("A.1", "`wait_for_job_status()` of a training that fails", "RuntimeError: TrainJob broken is Failed"),
    row("A.4.5", "why it failed, in `get_job_events()`", "not told", "FailedJobs, and which Job"),
)
def tells_of_a_failure(side: Side) -> Observed:
    name = "broken"
    side.sdk.run(train_held(), name=name, runtime="plain")
    side.admin.wait_phases(name, "Running")
    side.admin.tell(name, "/tmp/fail")
    raised = side.sdk.raised(WAIT, name=name, status=["Complete"])
    _await_news(side, name, "Failed")
    told = _news(side, name).get("Failed", "")
    why = "FailedJobs, and which Job" if "FailedJobs" in told and f"{name}-node-0" in told else told or "not told"
    return (f"{raised.type}: {raised.message}", why)


@probe(
    row("A.3", "`ActiveDeadlineSeconds(seconds=3)`: after that, shown as", "Failed"),
    row("A.4.5", "that it was the deadline, in `get_job_events()`", "not told", "DeadlineExceeded"),
)
def ends_at_a_deadline(side: Side) -> Observed:
    name = "late"
    side.sdk.run(train_held("ActiveDeadlineSeconds(seconds=3)"), name=name, runtime="plain")
    status = side.sdk.run(f"{WAIT}.status", name=name, status=["Failed"])
    _await_news(side, name, "Failed")
    told = _news(side, name).get("Failed", "")
    return (status, "DeadlineExceeded" if "DeadlineExceeded" in told else told or "not told")


@probe(
    row(
        "A.4.5",
        "the operator's warning (here: a quota forbids JobSets) in `get_job_events()`",
        "not shown",
        "shown, with the quota's name",
    )
)
def shows_what_stands_in_the_way(side: Side) -> Observed:
    hard = {"count/jobsets.jobset.x-k8s.io": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-jobsets"}, "spec": {"hard": hard}}
    home = side.elsewhere(quota)
    where = (f"--namespace={home.namespace}", "resourcequota", "no-jobsets")
    home.wait("the quota to hold", lambda: home.cluster.get(*where)["status"].get("hard") == hard)
    side.sdk.run(train_held(), name="stuck", runtime="plain", namespace=home.namespace)
    home.wait("the operator's warning", lambda: home.has_event("stuck", _CREATION_FAILED))
    told = _news(side, "stuck", home).get(_CREATION_FAILED, "")
    return ("shown, with the quota's name" if "no-jobsets" in told else told or "not shown",)


@probe(
    row("A.4.5", "a training whose runtime was deleted: `get_job()`, and `list_jobs()` for all", "raise"),
    row(
        "A.4.5",
        "deleting the runtime of a training that Kueue queues",
        "goes through",
        "refused, and says which training needs it",
    ),
)
def loses_its_runtime(side: Side) -> Observed:
    home = side.elsewhere(documents.plain("gone", namespace="?"), documents.plain("needed", namespace="?"))
    side.sdk.run(train_held(), name="orphan", runtime="gone", namespace=home.namespace)
    label = f'Labels(labels={{"{documents.QUEUE}": "research"}})'
    side.sdk.run(train_held(label), name="queued", runtime="needed", namespace=home.namespace)
    home.wait_phases("orphan", "Running")
    home.api.delete("trainingruntimes", home.namespace, "gone")
    calls = ("client.get_job('orphan')", "client.list_jobs()")
    raise_both = all(side.sdk.outcome(call, namespace=home.namespace).error for call in calls)
    try:
        home.api.delete("trainingruntimes", home.namespace, "needed")
        deletion = "goes through"
    except RefusedError as refused:
        named = f"{home.namespace}/queued" in refused.message
        deletion = "refused, and says which training needs it" if named else refused.message
    home.end("orphan", "queued")
    return ("raise" if raise_both else "answer", deletion)


@probe(
    row("A.4.4", "after a retry inside a Job, `node-0` is", "the pod whose name comes first, be it the failed one"),
    row("A.4.4", "after a restart by the JobSet's failurePolicy, `node-0` is", "the new pod"),
)
def finds_the_pod_after_a_retry(side: Side) -> Observed:
    retried = documents.plain("retried", namespace="?")
    documents.jobs(retried)[0]["template"]["spec"]["backoffLimit"] = 3
    restarted = documents.plain("restarted", namespace="?", failurePolicy={"maxRestarts": 3})
    home = side.elsewhere(retried, restarted)
    names = ("retried", "restarted")
    for name in names:
        side.sdk.run(train_held(), name=name, runtime=name, namespace=home.namespace)
    for name in names:
        home.wait_phases(name, "Running")
    first = home.pod_names("restarted")
    for name in names:
        home.tell(name, "/tmp/fail")
    home.wait_phases("retried", "Failed", "Running")
    home.wait("a new pod", lambda: home.phases("restarted") == ["Running"] and home.pod_names("restarted") != first)
    cell = "client.get_job(name).steps[0].pod_name"
    found = {name: side.sdk.run(cell, name=name, namespace=home.namespace) for name in names}
    by_name = found["retried"] == min(home.pod_names("retried"))
    new = [found["restarted"]] == home.pod_names("restarted")
    home.end(*names)
    return (
        "the pod whose name comes first, be it the failed one" if by_name else "another",
        "the new pod" if new else "the old pod",
    )


PARTIAL = """
def held():
    import time

    time.sleep(3600)


trainer = CustomTrainer(func=held, num_nodes=2, resources_per_node={"cpu": "10m", SLOT: 1})
client.train(runtime="plain", trainer=trainer, options=[Name(name="partial")])
"""


@probe(
    row("A.4.5", "a training of two nodes, one of which has no room, is shown as", "Created"),
    row("A.1", "logs of a step that has not begun, followed", "nothing, at once"),
)
def waits_for_room(side: Side) -> Observed:
    side.sdk.run(PARTIAL, SLOT=documents.SLOT)
    side.admin.wait_phases("partial", "Pending", "Running")
    job = side.sdk.run("client.get_job('partial')")
    (pending,) = (step["name"] for step in job["steps"] if step["status"] == "Pending")
    lines = side.sdk.run("client.get_job_logs('partial', step=step, follow=True)", step=pending)
    side.sdk.run("client.delete_job('partial')")
    return (job["status"], "nothing, at once" if lines == [] else str(lines))


@probe(
    row("A.4.5", "a training that another cluster runs (MultiKueue), while it runs", "Created, no steps, no logs"),
    row("A.4.5", "the same, when its end and progress were copied", "Complete"),
    row("A.1", "`list_jobs()` of 3 sends", "10 requests"),
    row("A.1", "`list_jobs(runtime=...)`", "those of the runtime"),
)
def sees_trainings_of_another_cluster(side: Side) -> Observed:
    home = side.elsewhere(
        *(documents.unmanaged(f"remote-{i}", "?") for i in range(2)),
        documents.unmanaged("remote-torch", "?", runtime="torch-distributed"),
    )
    job = side.sdk.run("client.get_job('remote-0')", namespace=home.namespace)
    lines = side.sdk.run("client.get_job_logs('remote-0', follow=True)", namespace=home.namespace)
    done = {"type": "Complete", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": _NOW}
    progress = {"lastUpdatedTime": _NOW, "progressPercentage": 100}
    status = {"status": {"conditions": [done], "trainerStatus": progress}}
    home.api.patch("trainjobs", home.namespace, "remote-0", status, part="status")
    ended = side.sdk.run("client.get_job('remote-0').status", namespace=home.namespace)
    with side.another_sdk() as sdk:
        listed = sdk.outcome("client.list_jobs()", namespace=home.namespace)
    own = side.sdk.run(
        "[job.name for job in client.list_jobs(client.get_runtime('torch-distributed'))]", namespace=home.namespace
    )
    return (
        f"{job['status']}, {'no steps' if job['steps'] == [] else job['steps']}, {'no logs' if lines == [] else lines}",
        ended,
        f"{sum('/configmaps/' not in request for request in listed.requests)} requests",
        "those of the runtime" if own == ["remote-torch"] else str(own),
    )


_NOW = "2026-01-01T00:00:00Z"


def _news(side: Side, name: str, home: Admin | None = None) -> dict[str, str]:
    """Return the events about the TrainJob itself that the SDK shows: reason to message, in its order."""
    namespace = (home or side.admin).namespace
    events: list[dict[str, Any]] = side.sdk.run("client.get_job_events(name)", name=name, namespace=namespace)
    return {one["reason"]: one["message"] for one in events if one["involved_object_kind"] == "TrainJob"}


def _await_news(side: Side, name: str, reason: str) -> None:
    """Wait for an event, which follows a moment after what it tells of.

    The reference has none of the kind, which only time can show: it gets as long as ours may take on a busy cluster.
    """
    if side.name == "ours":
        side.admin.wait(f"{reason} of {name}", lambda: side.admin.has_event(name, reason))
        return
    deadline = time.monotonic() + SILENCE
    while time.monotonic() < deadline and not side.admin.has_news(name):
        time.sleep(1)


def _says(admin: Admin, name: str, suspended: str) -> bool:
    return admin.conditions(name).get("Suspended") == suspended
