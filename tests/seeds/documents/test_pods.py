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
    told = "echo $NCCL_DEBUG $NCCL_SOCKET_IFNAME $(cat /shared/made) $HOSTNAME"
    runtime = shell_runtime(f"while [ ! -e /shared/aside ]; do sleep 0.1; done; {told}; sleep 1")
    pod = _pod(runtime)
    pod |= _SCHEDULING
    (main,) = pod["containers"]
    main["env"] = [{"name": "NCCL_SOCKET_IFNAME", "value": "eth0"}]
    main["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    made = {"command": ["bash", "-c", "echo prepared > /shared/made"], "volumeMounts": main["volumeMounts"]}
    aside = {"command": ["bash", "-c", "echo aside; touch /shared/aside; sleep inf"], "restartPolicy": "Always"}
    aside["volumeMounts"] = main["volumeMounts"]
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
