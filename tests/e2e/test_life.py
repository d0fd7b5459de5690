"""The life of a TrainJob with real pods: stopped and resumed, its runtime gone, its JobSet deleted, its time up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.localise import example
from tests.e2e.shell import WAITING, failing, shell_job, shell_runtime

if TYPE_CHECKING:
    from tests.e2e.user import User


def _image(runtime: dict[str, Any]) -> dict[str, Any]:
    """Return the runtime with an image that does not exist."""
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.invalid/none:1"
    return runtime


def _ranks(user: User, words: str) -> list[int]:
    """Return the ranks of the DDP example that have said something.

    Of pods that are there and print: a step may still be shown as running for a moment whose pods are being made.
    """
    lines = [line for line in user.logs("ddp", check=False) if line.startswith("rank") and line.endswith(words)]
    return sorted(int(line.split()[1]) for line in lines)


def test_ddp_is_suspended_and_resumed_and_outlives_its_runtime(user: User) -> None:
    runtime, program, job = example("ddp", image_name="torch")
    job["spec"]["trainer"]["env"] = [{"name": "OMP_NUM_THREADS", "value": "1"}, {"name": "STEPS", "value": "1000000"}]
    user.apply(runtime, program, job)
    user.wait_state("ddp", "Running", via=["Pending"])
    user.wait("both pods to be shown as ready", lambda: user.row("ddp")["READY"] == "2/2")
    user.wait("both ranks to train", lambda: _ranks(user, "trains") == [0, 1])
    user.wait_news("ddp", "created JobSet ddp for 2 pods; ")
    before = {pod["metadata"]["uid"] for pod in user.pods("ddp")}
    jobset = user.get("jobset", "ddp")["metadata"]

    user.apply(_image(runtime))
    user.kubectl("delete", "clustertrainingruntime", "torch-ddp")
    assert {pod["metadata"]["uid"] for pod in user.pods("ddp")} == before
    assert user.get("jobset", "ddp")["metadata"]["generation"] == jobset["generation"]

    user.set_suspend("ddp", suspend=True)
    user.wait_state("ddp", "Suspended", via=["Running", "Pending"])
    user.wait("its pods to stop", lambda: not user.names("pods"))
    assert user.state("ddp") == "Suspended"
    user.wait_news("ddp", "suspended: ")

    user.set_suspend("ddp", suspend=False)
    user.wait_state("ddp", "Running", via=["Suspended", "Pending"])
    user.wait("both ranks to train again", lambda: _ranks(user, "trains") == [0, 1])
    user.wait_news("ddp", "resumed: ")
    assert user.get("jobset", "ddp")["metadata"]["uid"] == jobset["uid"]
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in user.pods("ddp"))

    user.tell("ddp", "/tmp/stop")
    user.wait_state("ddp", "Succeeded", via=["Running", "Pending"])
    assert _ranks(user, "weights equal on all ranks: True") == [0, 1]
    assert user.wait_event("ddp", "Completed")


def test_a_trainjob_past_its_deadline_fails_and_its_pods_stop(user: User) -> None:
    user.apply(shell_runtime(WAITING), shell_job("slow", activeDeadlineSeconds=15))
    user.wait("its pod", lambda: bool(user.pods("slow")))  # that it also runs by then is nobody's promise
    user.wait_state("slow", "Failed")
    failed = user.condition("slow", "Failed")
    assert failed is not None
    assert failed["reason"] == "DeadlineExceeded"
    assert "spec.activeDeadlineSeconds, 15 s" in failed["message"]
    assert "DeadlineExceeded" in user.wait_event("slow", "Failed")
    user.wait("the JobSet and its pods to go", lambda: not user.names("jobsets") and not user.names("pods"))


def test_a_jobset_deleted_by_hand_comes_back_while_the_trainjob_runs(user: User) -> None:
    user.apply(shell_runtime(WAITING), shell_job("robust"))
    user.wait_state("robust", "Running", via=["Pending"])
    first = user.get("jobset", "robust")["metadata"]["uid"]
    former = {pod["metadata"]["uid"] for pod in user.pods("robust")}
    user.kubectl("delete", "jobset", "robust")
    user.wait("another JobSet", lambda: user.names("jobsets") == ["robust"])
    assert user.get("jobset", "robust")["metadata"]["uid"] != first

    def new_one_runs() -> bool:  # the former pod runs until the garbage collector comes to it
        pods = user.pods("robust")
        return former.isdisjoint(pod["metadata"]["uid"] for pod in pods) and [
            pod["status"]["phase"] for pod in pods
        ] == ["Running"]

    user.wait("its pod", new_one_runs)
    user.tell("robust", "/tmp/go")
    user.wait_state("robust", "Succeeded")

    user.kubectl("delete", "jobset", "robust")
    user.apply(shell_job("later"))
    user.wait_state("later", "Running", via=["Pending"])  # the operator has had time for the first
    assert user.names("jobsets") == ["later"]
    assert user.state("robust") == "Succeeded"


def test_a_training_that_fails_says_why(user: User) -> None:
    user.apply(shell_runtime(failing("no such dataset")), shell_job("wrong"))
    user.wait_state("wrong", "Failed")
    failed = user.condition("wrong", "Failed")
    assert failed is not None
    assert failed["reason"] == "FailedJobs"
    assert failed["message"].startswith("node-0 on ")
    assert "exit code 3" in failed["message"]
    assert "no such dataset" in failed["message"]
    assert "wrong-node-0" in failed["message"]
    assert failed["message"] in user.wait_event("wrong", "Failed")
    assert user.logs("wrong") == ["no such dataset"]


def test_what_went_wrong_first_is_told_when_pods_and_jobset_are_gone(user: User) -> None:
    user.apply(shell_runtime(failing("no such dataset")), shell_job("gone"))
    user.wait_state("gone", "Failed")
    (pod,) = user.pods("gone")
    user.wait(
        "an event of the pod that says why",
        lambda: any("no such dataset" in one for one in user.events(pod["metadata"]["name"], "Pod").values()),
    )
    user.kubectl("delete", "jobset", "gone")
    user.wait("its pods to go", lambda: not user.names("pods"))
    fault = user.get("trainjob", "gone")["status"]["firstFault"]
    assert (fault["pod"], fault["exitCode"], fault["log"]) == (pod["metadata"]["name"], 3, ["no such dataset"])
    assert fault["node"] == pod["spec"]["nodeName"]
    wide = user.kubectl("get", "trainjob", "gone", "--output=wide").stdout.splitlines()[1].split()
    assert wide[1] == "Failed"
    assert wide[-1] == fault["cause"]


def test_a_trainjob_that_cannot_be_set_up_says_why_and_goes_on_once_it_can(user: User) -> None:
    runtime, job = shell_runtime("true"), shell_job("blocked")
    jobset = runtime["spec"]["template"]["spec"] | {"suspend": True}
    meta = {"name": "blocked", "namespace": user.namespace}
    user.apply({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": jobset})
    user.apply(runtime, job)
    why = user.wait_event("blocked", "TrainJobResourcesCreationFailed")
    assert "JobSet blocked is not controlled by this TrainJob" in why
    assert why in user.kubectl("describe", "trainjob", "blocked").stdout
    assert user.state("blocked") == "Pending"
    user.kubectl("delete", "jobset", "blocked")
    user.wait_state("blocked", "Succeeded")
