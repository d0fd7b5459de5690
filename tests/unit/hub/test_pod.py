"""A pod as it comes in: what is kept of it, and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hub.kept import parsed, pod
from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.client.reading.jobs import read_job
from trainplane.client.reading.steps import read_steps
from trainplane.hub.errors import PodRefusedError
from trainplane.hub.logarchive.pod import CONTAINERS, POD_BYTES, parse
from trainplane.hub.logarchive.records import RECORD_BYTES

Tree = dict[str, Any]

INDEX = names.ANNOTATION_COMPLETION_INDEX


def full() -> Tree:
    """Return a pod with what people put into them, and what clusters add."""
    tree = pod("x-node-0-3-abcde", index=3, containers=("node", "sidecar"))
    tree["metadata"] |= {
        "annotations": {INDEX: "3", "kubectl.kubernetes.io/last-applied-configuration": "SECRET"},
        "managedFields": [{"manager": "SECRET"}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u1"},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "x-node-0", "uid": "u2", "controller": True},
        ],
    }
    tree["spec"] |= {
        "nodeName": "gpu-7",
        "volumes": [{"name": "mpi-ssh-auth", "secret": {"secretName": "SECRET"}}],
        "initContainers": [{"name": "setup", "command": ["SECRET"]}],
    }
    tree["spec"]["containers"][0] |= {
        "image": "registry/train:1",
        "command": ["python", "-c", "SECRET" * 100_000],
        "args": ["SECRET"],
        "env": [
            {"name": "PET_NNODES", "value": "1:4"},
            {"name": "PET_NPROC_PER_NODE", "value": "SECRET"},
            {"name": "TF_CONFIG", "value": "SECRET"},
            {"name": "HF_TOKEN", "value": "SECRET"},
        ],
        "resources": {"limits": {"nvidia.com/gpu": 8, "cpu": "4"}},
        "livenessProbe": {"exec": {"command": ["SECRET"]}},
    }
    tree["status"]["containerStatuses"][0] |= {
        "restartCount": 2,
        "lastState": {"terminated": {"exitCode": 1, "reason": "OOMKilled", "message": "killed", "finishedAt": "t"}},
    }
    return tree


def test_what_is_needed_is_kept_and_secrets_are_not() -> None:
    found = parsed(full())
    text = msgspec.json.encode(found)
    assert b"SECRET" not in text
    assert b"HF_TOKEN" not in text
    assert len(text) < 2000
    assert (found.step, found.index, found.containers) == ("node", ("node", 0, 3), ("node", "sidecar"))
    assert found.init_containers == ("setup",)
    assert found.controller is not None
    assert (found.controller.kind, found.controller.uid) == ("Job", "u2")
    assert parse(text) == found, "what is kept is read as it was written"


def test_the_sdk_sees_in_it_what_it_sees_in_the_pod() -> None:
    tree = full()
    tree["spec"]["containers"][0]["env"][1]["value"] = "8"
    (before,), (after,) = read_steps([tree]), read_steps([parsed(tree).to_tree()])
    assert after == before
    job = {"metadata": {"name": "x", "namespace": "team"}, "spec": {"runtimeRef": {"name": "r"}}}
    seen = [read_job(job, pods, runtime=None).num_nodes for pods in ([tree], [parsed(tree).to_tree()])]
    assert seen == [4, 4]


@pytest.mark.parametrize(
    ("where", "key"), [("labels", INDEX), ("annotations", INDEX), ("labels", names.LABEL_JOB_INDEX)]
)
@pytest.mark.parametrize("value", ["²", "\u0661", "-1", " 1", "1e3", "0x1", "9" * 30, "2147483648", "+1", "1_0"])
def test_numbers_that_are_none_are_refused(where: str, key: str, value: str) -> None:
    tree = trees.put(pod(), "metadata", where, key, value=value)
    with pytest.raises(PodRefusedError, match=r"is no number from 0 to 2147483647"):
        parsed(tree)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "name"), "../../etc"),
        (("metadata", "uid"), "a/b"),
        (("metadata", "uid"), ""),
        (("metadata", "uid"), "x" * 300),
        (("metadata", "namespace"), "a\nb"),
        (("metadata", "labels", names.LABEL_REPLICATED_JOB), "no]de\n[other-0"),
        (("metadata", "labels"), [1]),
        (("spec", "containers"), []),
        (("spec", "containers"), [{"name": "../x"}]),
        (("spec", "containers"), [{"name": f"c{number}"} for number in range(CONTAINERS + 1)]),
        (("status", "containerStatuses"), [{"name": "node", "restartCount": -1}]),
        (("status", "containerStatuses"), [{"name": "node", "restartCount": 1 << 40}]),
        (("status", "containerStatuses"), [{"name": "node", "restartCount": 1.5}]),
        (("status", "containerStatuses"), {"name": "node"}),
    ],
)
def test_what_no_api_server_gives_is_refused(path: tuple[str, ...], value: Any) -> None:
    with pytest.raises(PodRefusedError):
        parsed(trees.put(pod(), *path, value=value))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"metadata":{"name":"\xff"}}', b"[" * 100_000, b"null"])
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(PodRefusedError):
        parse(raw)


def test_what_is_left_of_a_pod_is_small_whatever_its_author_does() -> None:
    many = range(20_000)
    tree = full()
    tree["metadata"]["labels"] |= {f"aa/{number:05d}" + "x" * 300: "y" * 63 for number in many}
    tree["metadata"]["labels"] |= {f"ab/{number:05d}": "y" * 63 for number in many}
    tree["spec"]["volumes"] = [{"name": f"v{number}"} for number in many] + tree["spec"]["volumes"]
    tree["spec"]["containers"][0]["env"] += [{"name": "PET_NNODES", "value": "2"} for _ in many]
    tree["spec"]["containers"][0]["resources"]["limits"] |= {f"r/{number}": "1" for number in many}
    tree["status"]["conditions"] += [{"type": f"t{n}", "status": "True", "message": "m" * 9000} for n in range(500)]
    tree["status"]["message"] = "m" * 1_000_000
    found = parsed(trees.put(tree, "status", "conditions", value=tree["status"]["conditions"][:20]))
    assert len(msgspec.json.encode(found)) < POD_BYTES < RECORD_BYTES
    assert (found.step, found.index.completion_index) == ("node", 3), "what is read comes before what is not"
    assert (found.to_tree()["spec"]["volumes"][0]) == {"name": "mpi-ssh-auth"}
    with pytest.raises(PodRefusedError, match="bytes"):
        parsed(tree)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_anything_at_all_is_a_pod_or_refused(value: Any) -> None:
    for path in (("metadata",), ("spec",), ("status",), ("metadata", "labels"), ("status", "containerStatuses")):
        try:
            parsed(trees.put(pod(), *path, value=value))
        except PodRefusedError:
            continue
