"""What an admin writes of pods in a runtime, as the guide lists it, is what real pods have and do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lab import node
from lab.images import reference as image
from tests.e2e.shell import shell_job, shell_runtime

if TYPE_CHECKING:
    from tests.e2e.user import User

Tree = dict[str, Any]

_NAME: Final = "kubernetes.io/hostname"
_SCHEDULING: Final[Tree] = {
    "nodeSelector": {_NAME: node.NAME},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "priorityClassName": "system-node-critical",
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": _NAME,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"team": "vision"}},
        }
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": _NAME, "operator": "In", "values": [node.NAME]}]}]
            }
        }
    },
    "hostNetwork": True,
}


def _pod(runtime: Tree) -> Tree:
    (step,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    pod: Tree = step["template"]["spec"]["template"]["spec"]
    return pod


def test_what_an_admin_writes_of_pods_reaches_them(user: User) -> None:
    runtime = shell_runtime("echo $NCCL_DEBUG $NCCL_SOCKET_IFNAME $(cat /shared/made) $HOSTNAME")
    pod = _pod(runtime)
    pod |= _SCHEDULING
    (main,) = pod["containers"]
    main["env"] = [{"name": "NCCL_SOCKET_IFNAME", "value": "eth0"}]
    main["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    made = {"command": ["bash", "-c", "echo prepared > /shared/made"], "volumeMounts": main["volumeMounts"]}
    aside = {"command": ["bash", "-c", "echo aside; sleep inf"], "restartPolicy": "Always"}
    base = {"image": image("python"), "imagePullPolicy": "Never"}
    pod["initContainers"] = [{"name": "prepare", **base, **made}, {"name": "aside", **base, **aside}]
    pod["volumes"] = [{"name": "shared", "emptyDir": {}}]
    user.apply(runtime, shell_job("placed", trainer={"env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}))
    user.wait_state("placed", "Succeeded")

    (made_pod,) = user.pods("placed")
    have = made_pod["spec"]
    assert have["nodeName"] == node.NAME
    for field, value in _SCHEDULING.items():
        assert have[field] == value if field != "tolerations" else value[0] in have[field]
    assert user.logs("placed")[0].split()[:3] == ["INFO", "eth0", "prepared"]
    aside_says = user.kubectl("logs", made_pod["metadata"]["name"], "--container=aside").stdout
    assert aside_says.splitlines() == ["aside"]


def test_resources_of_a_job_go_before_its_runtimes(user: User) -> None:
    """Also where the runtime has no mlPolicy."""
    runtime = shell_runtime("true")
    del runtime["spec"]["mlPolicy"]
    _pod(runtime)["containers"][0]["resources"] = {"requests": {"cpu": "20m", "memory": "32Mi"}}
    wanted = {"cpu": "10m", "memory": "48Mi"}
    user.apply(runtime, shell_job("sized", trainer={"resourcesPerNode": {"requests": wanted}}))
    user.wait_state("sized", "Succeeded")
    (pod,) = user.pods("sized")
    assert pod["spec"]["containers"][0]["resources"]["requests"] == wanted


_TWICE: Final = "echo try >> /kept/tries; [ $(wc -l < /kept/tries) -ge {times} ] || exit {code}"


def _retried(name: str, user: User, program: str, **spec: Any) -> tuple[Tree, Tree]:
    """Return a runtime whose program keeps count of its tries on the node, and its TrainJob."""
    runtime = shell_runtime(program)
    runtime["metadata"]["name"] = name
    pod = _pod(runtime)
    kept = {"path": f"/tmp/tries-{user.namespace}-{name}", "type": "DirectoryOrCreate"}
    pod["volumes"] = [{"name": "kept", "hostPath": kept}]
    pod["containers"][0]["volumeMounts"] = [{"name": "kept", "mountPath": "/kept"}]
    pod |= spec.pop("pod", {})
    (step,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    step["template"]["spec"] |= spec.pop("job", {})
    runtime["spec"]["template"]["spec"] |= spec
    job = shell_job(name)
    job["spec"]["runtimeRef"]["name"] = name
    return runtime, job


def test_what_failed_is_tried_again_as_the_runtime_says(user: User) -> None:
    twice = _TWICE.format(times=2, code=1)
    by_code = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    never_again = {"name": "user", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    scenes: dict[str, Tree] = {
        "in-place": {"pod": {"restartPolicy": "OnFailure"}, "job": {"backoffLimit": 3}},
        "whole": {"failurePolicy": {"maxRestarts": 1}},
        "one-index": {"job": {"backoffLimit": 6, "backoffLimitPerIndex": 1, "completionMode": "Indexed"}},
    }
    for name, spec in scenes.items():
        user.apply(*_retried(name, user, twice, **spec))
    rules = {"failurePolicy": {"maxRestarts": 3, "rules": [never_again]}, "job": {"podFailurePolicy": by_code}}
    user.apply(*_retried("by-code", user, "echo once >> /kept/tries; exit 42", **rules))

    for name in scenes:
        user.wait_state(name, "Succeeded", via=("Pending", "Running", "Restarting"))
    user.wait_state("by-code", "Failed", via=("Pending", "Running", "Restarting"))
    (pod,) = user.pods("in-place")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    assert user.get("jobset", "whole")["status"]["restarts"] == 1
    assert user.get("jobset", "one-index")["status"].get("restarts", 0) == 0
    assert user.get("jobset", "by-code")["status"].get("restarts", 0) == 0
