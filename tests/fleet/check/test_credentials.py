"""Credentials of workers: what MultiKueue may not do there, and kubeconfigs that nobody should use."""

from __future__ import annotations

import base64
import contextlib
import json
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.fleet import objects
from tests.fleet.api import Api
from tests.fleet.check.command import check
from tests.fleet.team import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lab.cluster import Cluster
    from lab.fleet import Fleet

Tree = dict[str, Any]


@pytest.fixture
def stranger(fleet: Fleet) -> Iterator[Stranger]:
    with contextlib.ExitStack() as stack:
        yield Stranger(fleet, stack)


class Stranger:
    """Makes MultiKueueClusters that no queue uses, all of the second worker, each with a kubeconfig of its own."""

    def __init__(self, fleet: Fleet, stack: contextlib.ExitStack) -> None:
        self.fleet = fleet
        self.worker = fleet.workers[1]
        self._hub = Api(fleet.hub)
        self._stack = stack

    def kubeconfig(self) -> Tree:
        tree: Tree = yaml.safe_load(self.worker.remote_kubeconfig())
        return tree

    def join(self, kubeconfig: Tree) -> str:
        """Let the hub know the worker by another name; forgotten when the test ends."""
        name = f"stranger-{uuid.uuid4().hex[:6]}"
        data = {"kubeconfig": base64.b64encode(yaml.safe_dump(kubeconfig).encode()).decode()}
        meta = {"name": name, "namespace": "kueue-system"}
        source = {"clusterSource": {"kubeConfig": {"location": name, "locationType": "Secret"}}}
        self._hub.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data},
            {"apiVersion": objects.KUEUE, "kind": "MultiKueueCluster", "metadata": {"name": name}, "spec": source},
        )
        self._stack.callback(self._hub.delete, "secrets", "kueue-system", name)
        self._stack.callback(self._hub.delete, "multikueueclusters", "", name)
        return name

    def token(self, rules: list[Tree]) -> str:
        """Return the token of a new ServiceAccount on the worker that may do no more than this."""
        name = f"stranger-{uuid.uuid4().hex[:6]}"
        api = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        role = {"apiGroup": api, "kind": "ClusterRole", "name": name}
        self.worker.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
            {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
            {
                "apiVersion": f"{api}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": role,
                "subjects": [subject],
            },
        )
        names = (f"serviceaccount/{name}", f"clusterrole/{name}", f"clusterrolebinding/{name}")
        self._stack.callback(self.worker.kubectl, "delete", "-n", "default", *names)
        rule = rules[-1]
        asked = ("auth", "can-i", rule["verbs"][-1], f"{rule['resources'][-1]}.{rule['apiGroups'][-1]}")
        whoever = f"--as=system:serviceaccount:default:{name}"
        wait_until("the role to count", lambda: self.worker.kubectl(*asked, whoever, "-A", check=False).code == 0)
        return self.worker.kubectl("create", "token", name, "-n", "default", "--duration=1h").stdout.strip()

    def active(self, name: str) -> Tree:
        """Return what Kueue says of the connection."""
        found = self._hub.get("multikueueclusters", "", name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((one for one in conditions if one["type"] == "Active"), {})


LITTLE = [
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues", "clusterqueues"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list", "watch"]},
]


def test_what_multikueue_may_not_do_is_named_and_own_eyes_see_the_rest(
    fleet: Fleet, stranger: Stranger, tmp_path: Path
) -> None:
    kubeconfig = stranger.kubeconfig()
    kubeconfig["users"] = [{"name": kubeconfig["users"][0]["name"], "user": {"token": stranger.token(LITTLE)}}]
    name = stranger.join(kubeconfig)
    said = check(fleet)
    refused = [text for level, text in said.problems(name, "credentials") if level == "stops"]
    assert refused == [
        "MultiKueue's credentials may not create, update, patch, delete workloads.kueue.x-k8s.io",
        "MultiKueue's credentials may not get, patch, update workloads/status.kueue.x-k8s.io",
        "MultiKueue's credentials may not create, update, patch, delete trainjobs.trainer.kubeflow.org",
        "MultiKueue's credentials may not get trainjobs/status.trainer.kubeflow.org",
    ]
    ((_, text),) = [found for found in said.problems(name, "credentials") if found[0] == "warns"]
    assert "the token ends at" in text
    assert "unseen" in {level for level, _ in said.problems(name, "runtimes")}
    both = _joined(fleet.hub, stranger.worker, tmp_path)
    said = check(fleet, "--worker", f"{name}=worker", "--context", "hub", kubeconfig=both)
    assert [text for level, text in said.problems(name, "credentials") if level == "stops"] == refused
    assert "unseen" not in {level for level, _ in said.problems(name, "runtimes")}


def _joined(hub: Cluster, worker: Cluster, folder: Path) -> Path:
    """Return a kubeconfig with a context for each, as an admin has it."""
    tree: Tree = {"contexts": [], "clusters": [], "users": []}
    for name, text in (("hub", hub.kubeconfig.read_text()), ("worker", worker.remote_kubeconfig())):
        one = yaml.safe_load(text)
        tree["clusters"].append({"name": name, "cluster": one["clusters"][0]["cluster"]})
        tree["users"].append({"name": name, "user": one["users"][0]["user"]})
        tree["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    path = folder / "both.kubeconfig"
    path.write_text(json.dumps(tree))
    return path


def test_kubeconfigs_that_kueue_refuses_are_those_that_the_check_refuses(fleet: Fleet, stranger: Stranger) -> None:
    cluster: tuple[Tree, ...] = (
        {"insecure-skip-tls-verify": True, "certificate-authority-data": None},
        {"certificate-authority": "/etc/ca.crt", "certificate-authority-data": None},
        {"server": "https://under_score.example:6443"},
    )
    user: tuple[Tree, ...] = (
        {"tokenFile": "/var/run/token"},
        {"username": "me", "password": "secret"},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true", "interactiveMode": "Never"}},
    )
    names = []
    for part, key, changes in [("clusters", "cluster", one) for one in cluster] + [
        ("users", "user", one) for one in user
    ]:
        tree = stranger.kubeconfig()
        entry = tree[part][0][key]
        kept = {name: value for name, value in (entry | changes).items() if value is not None}
        tree[part][0][key] = changes if part == "users" else kept
        names.append(stranger.join(tree))
    fine = stranger.join(stranger.kubeconfig())
    said = check(fleet)
    for name in names:
        assert {level for level, _ in said.problems(name, "credentials")} == {"stops"}
    assert said.problems(fine, "credentials") == []
    for name in names:  # it may see a MultiKueueCluster before its Secret, and says so first
        wait_until(f"Kueue to refuse {name}", partial(_is_insecure, stranger, name), log=fleet.hub)
    wait_until("Kueue to connect", lambda: stranger.active(fine).get("status") == "True", log=fleet.hub)


def _is_insecure(stranger: Stranger, name: str) -> bool:
    return bool(stranger.active(name).get("reason") == "InsecureKubeConfig")
