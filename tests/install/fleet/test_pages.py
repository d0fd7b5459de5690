"""docs/multikueue.md and docs/hub.md, followed to the letter on empty clusters: every part in pods, by its own chart.

The tests are steps of one story and run in order; each leaves the clusters to the next.
"""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING

import pytest

from deploy import hub_rbac
from lab import kwok
from lab.chart import NAMESPACE
from lab.paths import REPOSITORY
from tests.fleet.api import RefusedError
from tests.fleet.guide.admin import Admin
from tests.fleet.guide.page import Page
from tests.fleet.team import wait_until
from tests.grants.comparison import requests
from tests.install.fleet.console import shape, shown
from tests.install.fleet.flows import flows, forbidden, node_addresses
from tests.install.fleet.jobs import COUNTING, QUICK, TEAM, Jobs, Tree
from tests.install.fleet.stage import NAMES
from tests.install.fleet.watching import VIEW, Follower, Looks, Sender, connected, seen_by

if TYPE_CHECKING:
    from tests.fleet.guide.page import Command
    from tests.install.fleet.stage import Stage
    from tests.suite import SuiteReport

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

MULTIKUEUE = "docs/multikueue.md"
HUB = "docs/hub.md"
LATER = ("Replace a worker's token", "Take it apart")
"""Sections that other steps of the story follow."""


def commands(page: str, *sections: str) -> list[Command]:
    found = [one for one in Page.load(REPOSITORY / page).commands() if not sections or one.section in sections]
    assert found, f"{page} has no commands under {sections}"
    return found


def test_three_charts_on_three_clusters(stage: Stage, report: SuiteReport) -> None:
    start = time.monotonic()
    for command in commands(MULTIKUEUE, "Install"):
        stage.admin.follow(command, MULTIKUEUE)
    report.figure("fleet_install_s", time.monotonic() - start)
    for name in NAMES:
        for namespace, count in {"jobset-system": 1, "kueue-system": 1, "trainplane-system": 2}.items():
            pods = stage.api(name).list("pods", namespace)
            assert [pod["status"]["phase"] for pod in pods] == ["Running"] * count, f"{namespace} on {name}"


def test_the_page_leads_to_a_dispatched_job(stage: Stage) -> None:
    for worker in stage.fleet.workers:
        kwok.install(worker, nodes=2, capacity={"nvidia.com/gpu": "8"})  # the page's job wants what the lab has not
    for command in commands(MULTIKUEUE):
        if command.section in {"Install", *LATER}:
            continue
        if "examples/multikueue/trainjob.yaml" in command.script:
            for worker in stage.fleet.workers:  # training takes its time
                kwok.hold(worker, TEAM)
        if "=Succeeded" in command.script:
            for worker in stage.fleet.workers:
                kwok.release(worker, TEAM)
        stage.admin.follow(command, MULTIKUEUE)


def test_the_hub_is_added_by_its_page(stage: Stage, report: SuiteReport) -> None:
    start = time.monotonic()
    for command in commands(HUB):
        stage.admin.follow(command, HUB)
    report.figure("hub_install_s", time.monotonic() - start)
    pods = {pod["metadata"]["labels"].get("app") for pod in stage.api().list("pods", "trainplane-system")}
    assert {"trainplane-hub", "trainplane-hub-archive"} <= pods


def test_users_see_what_the_page_shows(stage: Stage, jobs: Jobs) -> None:
    rights = ("rolebinding", "ana", "--clusterrole=view", "--user=ana")
    stage.hub.kubectl("create", *rights, "-n", TEAM)
    jobs.add_runtimes()
    wait_until("Kueue to know the runtime", lambda: _submitted(jobs, "a"))
    ana = stage.user("ana")
    path = f"{VIEW}/a"
    wait_until(
        "both pods to be seen", lambda: '"readyPods":2' in ana.run(f"kubectl get --raw {path}", check=False).stdout
    )
    wait_until("enough lines", lambda: len(_lines(ana, f"{path}/log")) > 45)
    where = jobs.where("a") or ""
    pages = shown(Page.load(REPOSITORY / HUB))
    assert len(pages) >= 4
    for one in pages:
        done = ana.run(one.script, check=False)
        assert done.code == 0, f"{one.script} fails:\n{done.output}"
        expected = {shape(line.replace("east", where)) for line in one.printed}
        printed = {shape(line) for line in done.stdout.splitlines()}
        assert expected <= printed, f"{one.script} prints:\n{done.output}"


def test_logs_stay_when_the_copy_is_gone_for_who_may(stage: Stage, jobs: Jobs) -> None:
    jobs.stop("a")
    ana, bo, eve = (stage.user(name) for name in ("ana", "bo", "eve"))
    log = f"{VIEW}/a/log"
    wait_until("the last line", lambda: any(line.startswith("end ") for line in _lines(ana, log)[-1:]))
    lines = _lines(ana, log)
    assert lines == [*(f"line {number}" for number in range(len(lines) - 1)), f"end {len(lines) - 1}"]
    assert _lines(bo, log) == lines
    for user, part in ((bo, "pods"), (eve, "log"), (eve, "pods")):
        assert "Forbidden" in user.run(f"kubectl get --raw {VIEW}/a/{part}", check=False).stderr
    shows = f"kubectl get trainjobs.hub.trainplane.dev a -n {TEAM} --no-headers"
    wait_until("the hub to show its end", lambda: ana.run(shows, check=False).stdout.split()[2:3] == ["Complete"])


def test_why_a_job_waits_is_told_of_the_hub_and_both_workers(stage: Stage, jobs: Jobs) -> None:
    jobs.submit("large", QUICK, nodes=40, cpu="1")  # a worker's quota is 32, the hub's 64
    ana = stage.user("ana")
    told: Tree = {}

    def codes() -> dict[str, list[str]]:
        done = ana.run(f"kubectl get --raw {VIEW}/large/queue", check=False)  # the hub hears of the job a moment later
        told.clear()
        told.update(json.loads(done.stdout) if done.code == 0 else {"causes": [], "clusters": []})
        answers = {"hub": told, **{one["cluster"]: one for one in told["clusters"]}}
        return {cluster: [cause["code"] for cause in one["causes"]] for cluster, one in answers.items()}

    expected = {"hub": ["AdmissionCheck"], "east": ["ExceedsQuota"], "west": ["ExceedsQuota"]}
    wait_until("Kueue to ask the workers, and what they say", lambda: codes() == expected)
    assert "unread" not in str(told)
    stage.api().delete("trainjobs", TEAM, "large")


def test_tokens_are_replaced_without_a_pause(stage: Stage, jobs: Jobs, report: SuiteReport) -> None:
    old = {name: _kubeconfig(stage, name) for name in ("east", "west")}
    jobs.submit("steady", COUNTING, 2)
    ana = stage.user("ana")
    ask = seen_by(stage, "ana", "steady", 2)
    wait_until("the job to be seen", lambda: not ask())
    with Follower(ana.kubeconfig, "steady") as log:
        with Looks(ask) as view, Looks(connected(stage)) as kueue, Sender(jobs) as sender:
            wait_until("jobs before", lambda: len(sender.sent) >= 3)
            for command in commands(MULTIKUEUE, LATER[0]):
                stage.admin.follow(command, MULTIKUEUE)
            for name, kubeconfig in old.items():
                wait_until(f"the old token of {name} to be refused", lambda text=kubeconfig: _is_refused(stage, text))  # type: ignore[misc]
            after = len(sender.sent) + 3
            wait_until("jobs after", lambda: len(sender.sent) >= after)
        jobs.stop("steady")
    report.figure("rotation_gap_s", view.gap)
    report.figure("rotation_looks", view.looks)
    report.figure("rotation_kueue_gap_s", kueue.gap)
    report.figure("rotation_log_delay_s", log.delay)
    report.figure("rotation_jobs", len(sender.sent))
    report.figure("rotation_slowest_job_s", sender.slowest)
    report.figure("fleet_jobs_lost", len(sender.lost))
    assert (view.problems, kueue.problems, sender.refused, sender.lost) == ([], [], [], [])
    assert log.code == 0
    assert log.lines == [*(f"line {number}" for number in range(len(log.lines) - 1)), f"end {len(log.lines) - 1}"]


def test_a_token_that_leaked_is_revoked_first_and_replaced_then(stage: Stage, jobs: Jobs) -> None:
    leaked = _kubeconfig(stage, "east")
    stage.worker("east").kubectl("delete", "secrets", "-n", "kueue-system", "-l", "multikueue=token")
    wait_until("the token to be refused", lambda: _is_refused(stage, leaked))
    first, *_ = commands(MULTIKUEUE, LATER[0])
    stage.admin.follow(first, MULTIKUEUE)
    stage.api("west").patch("clusterqueues", "", "training", {"spec": {"stopPolicy": "Hold"}})
    jobs.submit("after", COUNTING)
    wait_until("the job on east", lambda: jobs.where("after") == "east")
    wait_until("its lines", lambda: len(_lines(stage.user("ana"), f"{VIEW}/after/log")) > 1)
    stage.api("west").patch("clusterqueues", "", "training", {"spec": {"stopPolicy": "None"}})
    jobs.stop("after")


def _submitted(jobs: Jobs, name: str) -> bool:
    """Submit a job; until Kueue knows its runtime, it is refused."""
    try:
        jobs.submit(name, COUNTING, 2)
    except RefusedError as error:
        assert "runtime" in error.message  # noqa: PT017 anything else is wrong
        return False
    return True


def _lines(user: Admin, path: str) -> list[str]:
    return user.run(f"kubectl get --raw {path}", check=False).stdout.splitlines()


def _kubeconfig(stage: Stage, name: str) -> str:
    """Return the kubeconfig by which the hub reaches a worker now."""
    secret = stage.api().get("secrets", "kueue-system", name)
    assert secret is not None
    return base64.b64decode(secret["data"]["kubeconfig"]).decode()


def _is_refused(stage: Stage, kubeconfig: str) -> bool:
    """Tell whether a kubeconfig is good for nothing any more."""
    path = stage.folder / "old.kubeconfig"
    path.write_text(kubeconfig)
    return "Unauthorized" in Admin(stage.hub, path).run("kubectl get clusterqueues", check=False).output


def test_nothing_was_denied_and_no_grant_of_the_hub_is_idle(stage: Stage, report: SuiteReport) -> None:
    ours = [f"{NAMESPACE}:{name}" for name in (hub_rbac.SERVER, hub_rbac.FRONT)]
    asked = [one for one in requests(stage.hub.audit()) if one.account in ours]
    assert {one.account for one in asked} == set(ours)
    for worker in stage.fleet.workers:
        there = [one for one in requests(worker.audit()) if one.account == "kueue-system:multikueue-sa"]
        assert there
        asked += there
    denied = [one for one in asked if not one.allowed]
    used = {(one.verb, one.group, one.resource) for one in asked if one.account in ours}
    idle = [
        (role.name, verb, resource)
        for role in hub_rbac.ROLES
        for grant in role.grants
        for verb in grant.verbs
        for resource in grant.resources
        if (verb, grant.group, resource) not in used
    ]
    report.figure("hub_denials", len(denied))
    report.figure("hub_unused_grants", len(idle))
    assert denied == []
    assert idle == []


def test_pods_of_the_hub_spoke_to_nobody_whom_their_policies_forbid(stage: Stage, report: SuiteReport) -> None:
    policies = stage.hub.get("networkpolicies", "-n", NAMESPACE)["items"]
    pods = [pod for pod in stage.api().list("pods", NAMESPACE) if "app" in pod["metadata"]["labels"]]
    assert len(pods) == 3
    spoken = flows(stage.hub)
    addresses = {pod["status"]["podIP"] for pod in pods}
    report.figure("hub_flows", sum(bool({flow.source, flow.target} & addresses) for flow in spoken))
    workers = {(worker.address, worker.port) for worker in stage.fleet.workers}
    assert workers <= {(flow.target, flow.port) for flow in spoken if flow.source in addresses}
    assert list(forbidden(spoken, policies, pods, node_addresses(stage.hub))) == []


def test_it_is_taken_apart_as_the_page_says(stage: Stage) -> None:
    for command in commands(MULTIKUEUE, LATER[1]):
        stage.admin.follow(command, MULTIKUEUE)
    wait_until("the team to be gone", lambda: not any(stage.api(name).get("namespaces", "", TEAM) for name in NAMES))
