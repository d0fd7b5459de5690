from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.hub.check_objects import (
    NAMESPACE,
    altered,
    cluster_facts,
    cluster_queue,
    content,
    fleet_facts,
    hub_facts,
    local_queue,
    runtime,
    train_job,
    worker_facts,
)
from trainplane.hub.check.facts import ClusterFacts, Reference, Unseen
from trainplane.hub.check.judge import judge
from trainplane.hub.check.needs import needs_of, read_manifest, references_of
from trainplane.hub.errors import ManifestError
from trainplane.kube.resource import Key
from trainplane.resources import (
    CLUSTER_QUEUES,
    CLUSTER_TRAINING_RUNTIMES,
    COHORTS,
    CONFIG_MAPS,
    LOCAL_QUEUES,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    RESOURCE_FLAVORS,
    SECRETS,
    SERVICE_ACCOUNTS,
)

if TYPE_CHECKING:
    from trainplane.hub.check.report import Finding

Tree = dict[str, Any]

POD: Tree = {
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
        {"name": "conf", "configMap": {"name": "settings"}},
        {"name": "maybe", "configMap": {"name": "perhaps", "optional": True}},
        {"name": "keys", "secret": {"secretName": "ssh"}},
        {"name": "many", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "half"}}]}},
        {"name": "cloud", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi-key"}}},
        {"name": "tmp", "emptyDir": {}},
    ],
    "containers": [
        {
            "name": "node",
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "flags", "key": "b", "optional": True}}},
                {"name": "C", "value": "plain"},
            ],
            "envFrom": [{"secretRef": {"name": "s3"}}, {"configMapRef": {"name": "env"}}],
        }
    ],
    "initContainers": [{"name": "prepare", "envFrom": [{"secretRef": {"name": "early"}}]}],
    "imagePullSecrets": [{"name": "pull"}],
    "serviceAccountName": "trainer",
    "priorityClassName": "urgent",
}


def test_everything_that_a_pod_cannot_start_without_is_found() -> None:
    found = {(one.resource, one.name): one for one in references_of(POD, "pods of node")}
    assert set(found) == {
        (PERSISTENT_VOLUME_CLAIMS, "datasets"),
        (CONFIG_MAPS, "settings"),
        (SECRETS, "ssh"),
        (SECRETS, "part"),
        (CONFIG_MAPS, "half"),
        (SECRETS, "csi-key"),
        (SECRETS, "hf"),
        (SECRETS, "s3"),
        (CONFIG_MAPS, "env"),
        (SECRETS, "early"),
        (SECRETS, "pull"),
        (SERVICE_ACCOUNTS, "trainer"),
        (PRIORITY_CLASSES, "urgent"),
    }
    assert found[SECRETS, "hf"].by == "container node of the pods of node"
    assert [one.name for one in found.values() if not one.fatal] == ["pull"]


def test_a_pod_that_names_nothing_needs_nothing() -> None:
    pod = {"containers": [{"name": "a"}], "serviceAccountName": "default", "priorityClassName": "system-node-critical"}
    assert list(references_of(pod, "x")) == []


def test_needs_come_from_the_rendered_pods_and_each_is_named_once() -> None:
    hub = altered(hub_facts(), CLUSTER_TRAINING_RUNTIMES, runtime(volumes=[POD["volumes"][0], POD["volumes"][0]]))
    job = train_job(cpu="3", nodes=2)
    job["spec"]["trainer"]["env"] = [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "k"}}}]
    needs = needs_of(job, hub)
    assert needs.problem == ""
    assert needs.queue == Key(NAMESPACE, "gpu")
    assert [(one.resource, one.name) for one in needs.references] == [
        (PERSISTENT_VOLUME_CLAIMS, "datasets"),
        (SECRETS, "hf"),
    ]
    (pods,) = needs.pod_sets
    assert (pods.name, pods.count, {name: str(amount) for name, amount in pods.total.items()}) == (
        "node",
        2,
        {"cpu": "6"},
    )


def test_a_namespaced_runtime_is_found_in_the_jobs_namespace() -> None:
    job = train_job(runtimeRef={"name": "mine", "kind": "TrainingRuntime"})
    assert needs_of(job, hub_facts()).problem == ""


def test_a_runtime_that_the_hub_lacks_is_named_with_what_it_has() -> None:
    needs = needs_of(train_job(runtimeRef={"name": "jax"}), hub_facts())
    text = "spec.runtimeRef names ClusterTrainingRuntime jax, which the hub does not have (it has: torch)"
    assert needs.problem == text


@pytest.mark.parametrize(
    "spec",
    [
        {"trainer": {"numNodes": "two"}},
        {"trainer": {"resourcesPerNode": {"requests": {"cpu": "lots"}}}},
        {
            "runtimePatches": [
                {"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": 3}}}}
            ]
        },
    ],
)
def test_a_job_that_cannot_be_computed_says_why(spec: Tree) -> None:
    assert needs_of(train_job(**spec), hub_facts()).problem


# -- manifests


def test_a_manifest_gives_its_one_train_job_and_a_namespace() -> None:
    text = "kind: ConfigMap\n---\nkind: TrainJob\nmetadata: {name: tune}\n---\n"
    assert read_manifest(text, "mine", "f.yaml")["metadata"] == {"name": "tune", "namespace": "mine"}
    told = "kind: TrainJob\nmetadata: {name: tune, namespace: theirs}"
    assert read_manifest(told, "mine", "f.yaml")["metadata"]["namespace"] == "theirs"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [", "f.yaml is not YAML"),
        ("", "it has: nothing"),
        ("kind: Job", r"job of kubeflow.org, it has 0 \(it has: Job\)"),
        ("kind: TrainJob\n---\nkind: TrainJob", "it has 2"),
        ("kind: TrainJob", "no metadata.name"),
    ],
)
def test_what_is_no_manifest_of_a_train_job_is_refused(text: str, expected: str) -> None:
    with pytest.raises(ManifestError, match=expected):
        read_manifest(text, "mine", "f.yaml")


# -- the verdict


def on_hub(job: Tree, hub: ClusterFacts | None = None) -> tuple[Finding, ...]:
    return judge(fleet_facts(hub=hub or hub_facts(), trainjob=job)).hub.check("trainjob").findings


def on_worker(job: Tree, cluster: ClusterFacts | None = None, **worker: Any) -> tuple[Finding, ...]:
    facts = fleet_facts(worker_facts(cluster=cluster or cluster_facts(content()), **worker), trainjob=job)
    return judge(facts).worker("worker1").check("trainjob").findings


def test_a_job_that_fits_is_summed_up() -> None:
    report = judge(fleet_facts(trainjob=train_job()))
    assert report.ready
    assert report.hub.check("trainjob").summary == "research/tune: 2 pods, 4 cpu"
    assert report.worker("worker1").check("trainjob").summary == "research/tune: 2 pods, 4 cpu, names 0 objects"


def test_a_job_without_a_queue_that_dispatches_goes_nowhere() -> None:
    (finding,) = on_hub(train_job(queue=None))
    assert "has no label kueue.x-k8s.io/queue-name" in finding.problem
    assert finding.remedy == "name one of gpu"
    (finding,) = on_hub(train_job(queue="nope"))
    assert finding.problem == "its queue research/nope does not exist on the hub"
    hub = altered(hub_facts(), LOCAL_QUEUES, local_queue(), local_queue(Key(NAMESPACE, "here"), cluster_queue="plain"))
    (finding,) = on_hub(train_job(queue="here"), hub)
    assert finding.problem == "its queue research/here dispatches to no worker"


def test_a_job_that_somebody_else_manages_is_left_alone() -> None:
    (finding,) = on_hub(train_job(managedBy="me.example/x"))
    assert "spec.managedBy is 'me.example/x'" in finding.problem
    assert on_hub(train_job(managedBy="kueue.x-k8s.io/multikueue")) == ()


def test_a_job_that_cannot_be_computed_is_the_hubs_finding_and_workers_keep_quiet() -> None:
    job = train_job(runtimeRef={"name": "jax"})
    assert "its pods cannot be computed: spec.runtimeRef" in on_hub(job)[0].problem
    assert on_worker(job) == ()


def test_objects_that_the_worker_lacks_are_named_with_who_names_them() -> None:
    references = {
        Reference(SECRETS, "hf", "container node of the pods of node"): False,
        Reference(SECRETS, "pull", "imagePullSecrets of the pods of node", fatal=False): False,
        Reference(CONFIG_MAPS, "settings", "pods of node"): True,
        Reference(PRIORITY_CLASSES, "urgent", "pods of node"): False,
        Reference(PERSISTENT_VOLUME_CLAIMS, "data", "pods of node"): Unseen("forbidden", "403 Forbidden"),
    }
    findings = on_worker(train_job(), references=references)
    assert [finding.level for finding in findings] == ["stops", "warns", "stops", "unseen"]
    text = "Secret hf, named by container node of the pods of node, does not exist here in namespace research"
    assert findings[0].problem == text
    assert "PriorityClass urgent, named by pods of node, does not exist here" in findings[2].problem
    assert "cannot be seen: 403 Forbidden" in findings[3].problem


def test_quota_that_can_never_hold_the_job_is_said_with_the_amounts() -> None:
    (finding,) = on_worker(train_job(nodes=5))
    assert finding.level == "stops"
    assert "can never give more than 8 cpu in flavor default" in finding.problem
    assert "the job asks 10" in finding.problem
    assert on_worker(train_job(nodes=4)) == ()


def test_what_others_use_now_does_not_count() -> None:
    busy = cluster_queue()
    busy["status"]["flavorsReservation"] = [{"name": "default", "resources": [{"name": "cpu", "total": "8"}]}]
    assert on_worker(train_job(), altered(cluster_facts(content()), CLUSTER_QUEUES, busy)) == ()


def test_quota_of_the_cohort_counts_and_a_cohort_that_cannot_be_seen_is_said() -> None:
    rich = {"metadata": {"name": "all"}, "spec": cluster_queue(cpu="100")["spec"]}
    poor = altered(cluster_facts(content()), CLUSTER_QUEUES, cluster_queue(cpu="1", cohortName="all"))
    assert on_worker(train_job(), altered(poor, COHORTS, rich)) == ()
    (finding,) = on_worker(train_job(), altered(poor, COHORTS, Unseen("forbidden", "403")))
    assert finding.level == "unseen"


def test_a_resource_without_quota_and_a_flavor_that_does_not_fit_are_named() -> None:
    job = train_job()
    job["spec"]["trainer"]["resourcesPerNode"]["requests"]["nvidia.com/gpu"] = "1"
    (finding,) = on_worker(job)
    assert finding.problem == "ClusterQueue shared has no quota for nvidia.com/gpu, of which the pods of node ask 2"
    tainted = {"metadata": {"name": "default"}, "spec": {"nodeTaints": [{"key": "gpu", "effect": "NoSchedule"}]}}
    cluster = altered(cluster_facts(content()), RESOURCE_FLAVORS, tainted)
    (finding,) = on_worker(train_job(), cluster)
    assert finding.problem.startswith("flavor default of ClusterQueue shared does not fit the pods of node")
    blind = altered(cluster, RESOURCE_FLAVORS, Unseen("forbidden", "403"))
    (finding,) = on_worker(train_job(), blind)
    assert finding.level == "unseen"


def test_a_worker_that_the_queue_does_not_send_to_is_not_judged() -> None:
    facts = fleet_facts(
        worker_facts("worker1"), worker_facts("spare"), hub=hub_facts("worker1"), trainjob=train_job(nodes=99)
    )
    check = judge(facts).worker("spare").check("trainjob")
    assert check.findings == ()
    assert check.summary == "queue research/gpu does not send jobs here"


def test_a_queue_that_the_worker_lacks_is_told_once() -> None:
    assert on_worker(train_job(), altered(cluster_facts(content()), CLUSTER_QUEUES)) == ()
