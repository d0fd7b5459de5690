from __future__ import annotations

from tests.unit.client.local.documents import NOW, job, plan
from trainplane.api.podindex import PodIndex
from trainplane.client.backends.local.pods import COMPLETE, ON_FAILURE, READY, main_container, pod_at


def test_a_jobset_becomes_its_pods_in_order() -> None:
    made = plan(job("launcher", 1), job("node", 2, replicas=2))
    assert list(made.places) == [
        PodIndex("launcher", 0, 0),
        PodIndex("node", 0, 0),
        PodIndex("node", 0, 1),
        PodIndex("node", 1, 0),
        PodIndex("node", 1, 1),
    ]
    assert made.hostname(PodIndex("node", 1, 0)) == "a-node-1-0"
    assert made.number(PodIndex("node", 1, 0)) == 3


def test_silence_means_no_retry_in_place_and_one_pod() -> None:
    (only,) = plan({"name": "node", "template": {}}).jobs
    assert (only.retries, only.restart_policy, only.parallelism, only.completions) == (0, ON_FAILURE, 1, 1)


def test_what_the_runtime_says_of_failures_and_success_counts() -> None:
    rules = [
        {"action": "FailJobSet", "targetReplicatedJobs": ["node"], "onJobFailureReasons": ["BackoffLimitExceeded"]}
    ]
    made = plan(
        job(spec={"backoffLimit": 3, "activeDeadlineSeconds": 9}, pod={"restartPolicy": "Never"}),
        failurePolicy={"maxRestarts": 2, "rules": rules},
        successPolicy={"operator": "Any", "targetReplicatedJobs": ["node"]},
        network={"subdomain": "sub"},
        volumeClaimPolicies=[{"templates": [{"metadata": {"name": "shared"}}]}],
    )
    (only,) = made.jobs
    assert (only.retries, only.restart_policy, only.seconds) == (3, "Never", 9)
    assert (made.max_restarts, made.any_suffices, made.subdomain) == (2, True, "sub")
    assert made.claims == {"shared"}
    assert made.failure_rules[0].action == "FailJobSet"


def test_jobs_wait_for_those_they_depend_on() -> None:
    waits = job("node", dependsOn=[{"name": "data", "status": "Complete"}])
    assert plan(job("data", 1), waits).job("node").depends_on == (("data", COMPLETE),)
    in_order = plan(job("data", 1), job("node"), startupPolicy={"startupPolicyOrder": "InOrder"})
    assert in_order.job("node").depends_on == (("data", READY),)


def test_a_pod_is_labelled_as_jobset_does_and_holds_no_code() -> None:
    template = {"metadata": {"labels": {"team": "a"}}}
    entry = job(spec=None)
    entry["template"]["spec"]["template"] |= template
    pod = pod_at(
        plan(entry), PodIndex("node", 0, 1), suffix="abcde", attempt=2, now=NOW, address="1.2.3.4", machine="m"
    )
    labels = pod["metadata"]["labels"]
    assert pod["metadata"]["name"] == "a-node-0-1-abcde"
    assert labels["jobset.sigs.k8s.io/jobset-name"] == "a"
    assert labels["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
    assert labels["jobset.sigs.k8s.io/restart-attempt"] == "2"
    assert labels["batch.kubernetes.io/job-completion-index"] == "1"
    assert labels["team"] == "a"
    assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert pod["spec"]["containers"] == [{"name": "node", "image": "i"}]
    assert (pod["status"]["phase"], pod["status"]["podIP"]) == ("Pending", "1.2.3.4")


def test_the_container_that_trains_is_known_by_its_name() -> None:
    assert main_container({"containers": [{"name": "log"}, {"name": "node"}]}) == "node"
    assert main_container({"containers": [{"name": "other"}]}) == "other"
    assert main_container({}) == ""
