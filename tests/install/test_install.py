"""A real installation by Helm: pods of our image, webhooks through their Service, certificates and least privilege.

The tests are steps of one story and run in order; each leaves the cluster to the next.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from deploy.rbac import OPERATOR, Grant
from lab import chart, hub
from lab.errors import CommandError
from lab.processes import wait_for
from tests.e2e.localise import example
from tests.grants.comparison import requests
from tests.install.admin import CHART, MANAGER, NAMESPACE, NAMESPACED, RUNTIME, Admin, train_job

if TYPE_CHECKING:
    from tests.suite import SuiteReport

CRDS = {f"{plural}.trainer.kubeflow.org" for plural in ("trainjobs", "trainingruntimes", "clustertrainingruntimes")}


def test_it_is_running_after_one_command(admin: Admin, report: SuiteReport) -> None:
    admin.make_namespace()
    start = time.monotonic()
    admin.install()
    report.figure("install_s", time.monotonic() - start)
    pods = admin.cluster.get("pods", "-n", NAMESPACE)["items"]
    assert len(pods) == 2
    assert all(one["ready"] and one["restartCount"] == 0 for pod in pods for one in pod["status"]["containerStatuses"])


def test_one_of_two_replicas_leads(admin: Admin) -> None:
    def holder() -> str:
        spec = admin.cluster.get("lease", "trainer.kubeflow.org", "-n", NAMESPACE).get("spec", {})
        return str(spec.get("holderIdentity", ""))

    wait_for("a leader", lambda: bool(holder()), seconds=30)
    names = [pod["metadata"]["name"] for pod in admin.cluster.get("pods", "-n", NAMESPACE)["items"]]
    assert any(name in holder() for name in names)


def test_a_job_of_two_pods_completes(admin: Admin) -> None:
    admin.add_runtime()
    admin.train("first")
    pods = admin.cluster.get("pods", "-l", "jobset.sigs.k8s.io/jobset-name=first")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded", "Succeeded"]


@pytest.mark.full
def test_ddp_trains_on_two_pods(admin: Admin) -> None:
    runtime, program, job = example("ddp", image_name="torch")
    job["spec"]["trainer"]["env"] = [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "STEPS", "value": "20"}]
    admin.cluster.apply(runtime, program, job)
    wait_for("the training", lambda: bool(admin.conditions("ddp")), seconds=120)
    assert admin.conditions("ddp") == ["Complete"]
    said = admin.cluster.kubectl("logs", "-l", "jobset.sigs.k8s.io/jobset-name=ddp", "--tail=-1").stdout
    ends = sorted(line for line in said.splitlines() if line.endswith("weights equal on all ranks: True"))
    assert [line.partition(":")[0] for line in ends] == ["rank 0 of 2", "rank 1 of 2"]


def test_webhooks_answer_through_the_service(admin: Admin) -> None:
    wrong = train_job("wrong", 2).replace(f"name: {RUNTIME}", "name: nobody")
    with pytest.raises(CommandError, match=r"validator\.trainjob\.trainer\.kubeflow\.org"):
        admin.cluster.kubectl("create", "-f", "-", stdin=wrong)


def test_a_queue_may_hold_a_job_back(admin: Admin) -> None:
    """Also one that needs keys: an MPI job that waits has its Secret and its host file already."""
    admin.add_runtime("mpi", {"mpi": {"mpiImplementation": "OpenMPI", "numProcPerNode": 1}})
    held = train_job("held", 2, "mpi").replace("spec:\n", "spec:\n  suspend: true\n")
    admin.cluster.kubectl("create", "-f", "-", stdin=held)
    wait_for("the held JobSet", lambda: admin.has("jobset", "held"), seconds=30)
    wait_for("the held Secret", lambda: admin.has("secret", "held-mpi-ssh-auth"), seconds=30)
    wait_for("the held ConfigMap", lambda: admin.has("configmap", "held-mpi-hostfile"), seconds=30)
    admin.cluster.kubectl("patch", "trainjob", "held", "--type=merge", '--patch={"spec":{"suspend":false}}')
    wait_for("the resumed JobSet", lambda: not admin.cluster.get("jobset", "held")["spec"]["suspend"], seconds=30)
    admin.cluster.kubectl("delete", "trainjob", "held")


def test_a_deadline_ends_a_job(admin: Admin) -> None:
    admin.add_runtime("endless", says="import time; time.sleep(600)")
    late = train_job("late", 1, "endless").replace("spec:\n", "spec:\n  activeDeadlineSeconds: 5\n")
    admin.cluster.kubectl("create", "-f", "-", stdin=late)
    wait_for("the end of the late TrainJob", lambda: bool(admin.conditions("late")), seconds=60)
    assert admin.conditions("late") == ["Failed"]


def test_metrics_are_for_those_who_may(admin: Admin) -> None:
    cluster = admin.cluster
    cluster.kubectl("create", "clusterrole", "metrics-reader", "--verb=get", "--non-resource-url=/metrics")
    binding = ("--clusterrole=metrics-reader", "--serviceaccount=default:default")
    assert admin.metrics_status(admin.token("default")) == 403
    cluster.kubectl("create", "clusterrolebinding", "metrics-reader", *binding)
    assert admin.metrics_status("") == 401
    wait_for("metrics", lambda: admin.metrics_status(admin.token("default")) == 200, seconds=30)


def test_shipped_runtimes_come_with_an_upgrade(admin: Admin) -> None:
    admin.helm("upgrade", "trainplane", str(CHART), "--reuse-values", "--set=runtimes.defaultEnabled=true")
    names = {one["metadata"]["name"] for one in admin.cluster.get("clustertrainingruntimes")["items"]}
    assert {"torch-distributed", "jax-distributed", "torchtune-llama3.2-1b", RUNTIME} <= names
    admin.train("second")


def test_nothing_was_denied_and_no_grant_is_idle(admin: Admin, report: SuiteReport) -> None:
    events = admin.requests()
    assert events
    denied = [one for one in events if one["annotations"].get("authorization.k8s.io/decision") != "allow"]
    idle = [grant for grant in OPERATOR if not _is_used(grant, events)]
    report.figure("denials", len(denied))
    report.figure("unused_grants", len(idle))
    asked = _asked(events)
    seldom = [(verb, one.group, name) for one in OPERATOR for verb in one.seldom for name in one.resources]
    report.figure("seldom_verbs", len(seldom))
    report.figure("seldom_verbs_used", sum(one in asked for one in seldom))
    assert [(one["verb"], one["requestURI"]) for one in denied] == []
    assert idle == []


def test_uninstalled_it_leaves_crds_and_jobs_alone(admin: Admin) -> None:
    before = admin.cluster.get("jobset", "first")["metadata"]["uid"]
    admin.uninstall()
    cluster = admin.cluster
    assert {one["metadata"]["name"] for one in cluster.get("crds")["items"]} >= CRDS
    assert cluster.get("jobset", "first")["metadata"]["uid"] == before
    assert "Complete" in admin.conditions("second")
    kinds = "deployments,services,configmaps,secrets,leases,serviceaccounts,roles,rolebindings,networkpolicies,pdb"
    left = cluster.get(kinds, "-n", NAMESPACE)["items"]
    assert {one["metadata"]["name"] for one in left} <= {"default", "kube-root-ca.crt"}
    wide = "clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations"
    names = [one["metadata"]["name"] for one in cluster.get(wide)["items"]]
    assert [name for name in names if MANAGER in name or name.endswith("er.trainer.kubeflow.org")] == []


def test_installed_again_it_takes_them_up(admin: Admin) -> None:
    admin.install()
    admin.train("third")
    assert admin.conditions("first") == ["Complete"]


def test_the_hub_is_a_switch_away(admin: Admin) -> None:
    cluster = admin.cluster
    chart.offer_volume(cluster)
    cluster.kubectl("create", "namespace", "kueue-system")
    admin.helm(
        "upgrade", "trainplane", str(CHART), "--reuse-values", "--set=hub.enabled=true", "--wait", "--timeout=120s"
    )
    wait_for("the hub's API", lambda: hub.is_available(cluster), seconds=60)
    cluster.kubectl("get", "--raw", "/apis/hub.trainplane.dev/v1alpha1/namespaces/default/trainjobs")
    accounts = {f"system:serviceaccount:{NAMESPACE}:trainplane-hub{suffix}" for suffix in ("", "-front")}
    asked = [one for one in cluster.audit() if one["user"]["username"] in accounts]
    assert {one["user"]["username"] for one in asked} == accounts
    denied = [one for one in asked if one["annotations"].get("authorization.k8s.io/decision") != "allow"]
    assert [(one["verb"], one["requestURI"]) for one in denied] == []


def test_it_may_be_kept_to_a_namespace(admin: Admin) -> None:
    admin.uninstall()
    tenant = Admin(admin.cluster, namespace="team-a-system", jobs="team-a", kind="TrainingRuntime")
    tenant.make_namespace()
    admin.cluster.kubectl("create", "namespace", tenant.jobs)
    bundle = tenant.bring_certificate()
    tenant.install(f"--values={NAMESPACED}", f"--set=webhook.caBundle={bundle}")
    tenant.add_runtime()
    tenant.train("fourth")
    denied = [one for one in tenant.requests() if one["annotations"].get("authorization.k8s.io/decision") != "allow"]
    assert [(one["verb"], one["requestURI"]) for one in denied] == []
    roles = [one["metadata"]["name"] for one in admin.cluster.get("clusterroles")["items"]]
    assert [name for name in roles if MANAGER in name] == []


def _is_used(grant: Grant, events: list[dict[str, Any]]) -> bool:
    """Whether every verb of a grant was asked for, on each of its resources."""
    asked = _asked(events)
    return all((verb, grant.group, resource) in asked for verb in grant.verbs for resource in grant.resources)


def _asked(events: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """Return each verb that was asked for, with the group and the resource."""
    return {(request.verb, request.group, request.resource) for request in requests(events)}
