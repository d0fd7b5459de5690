"""What the hub server and its fronts may do on the hub: one line for each thing that they ask, with the reason.

`manifests/hub/rbac.yaml` is written from it, `manifests/hub/legacy-rbac.yaml` for older kinds of jobs, and the chart's
templates from those. `tests/install/fleet` compares these lines with the API server's audit log, as `tests/install`
does with the operator's. What is read of workers is read as MultiKueue's own user: `manifests/hub/worker-role.yaml`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.rbac import TRAINER, Grant
from trainplane.api.legacy import names as legacy_names
from trainplane.api.legacy.kinds import BY_PLURAL
from trainplane.api.names import HUB_GROUP
from trainplane.hub.apiserver.discovery import SUBRESOURCES

PATH: Final = Path("manifests/hub/rbac.yaml")
LEGACY_PATH: Final = Path("manifests/hub/legacy-rbac.yaml")
NAMESPACE: Final = "trainplane-hub"
SERVER: Final = "trainplane-hub"
FRONT: Final = "trainplane-hub-front"
_KUEUE: Final = "kueue.x-k8s.io"
_UNSTREAMED: Final = {"list": "where the API server does not stream lists"}
_API_SERVICE: Final = "v1alpha1.hub.trainplane.dev"
_RBAC: Final = "rbac.authorization.k8s.io"
_ON_THE_HUB: Final = "for TrainJobs that run on the hub itself"


@dataclass(frozen=True)
class Role:
    """A role, and who has it."""

    why: str
    name: str
    accounts: tuple[str, ...]
    grants: tuple[Grant, ...]
    namespace: str = ""
    """Where it holds; empty for everywhere."""


ROLES: Final = (
    Role("What the server reads of all namespaces, and asks", SERVER, (SERVER,), (
        Grant("Where every TrainJob is: mirrored, and read anew for each answer", "hub", TRAINER, ("trainjobs",),
              ("get", "watch"), seldom=_UNSTREAMED),
        Grant("Where Kueue has sent it", "hub", _KUEUE, ("workloads",), ("watch",), seldom=_UNSTREAMED),
        Grant("Who the workers are", "hub", _KUEUE, ("multikueueconfigs", "multikueueclusters"), ("watch",),
              seldom={**_UNSTREAMED, "get": "by name, until they are mirrored"}),
        Grant("Why a TrainJob waits: its runtime", "hub", TRAINER, ("trainingruntimes", "clustertrainingruntimes"), (),
              seldom={"get": "somebody asks for the queue of a job that waits"}),
        Grant("Why a TrainJob waits: its queue", "hub", _KUEUE,
              ("localqueues", "clusterqueues", "cohorts", "resourceflavors", "admissionchecks"), (),
              seldom={"list": "somebody asks for the queue of a job"}),
        Grant("Events of a TrainJob, and room for it", "hub", "", ("events", "nodes"), (),
              seldom={"list": "somebody asks for the events or the queue of a job"}),
        Grant("Whether a namespace is the one that a kept log is of, and what its queue takes", "hub", "",
              ("namespaces",), ("get",), seldom={"list": "somebody asks for the queue of a job"}),
        Grant("Jobs that run on the hub itself", "hub", "", ("pods",), ("watch",),
              seldom={**_UNSTREAMED, "get": _ON_THE_HUB}),
        Grant("What they print", "hub", "", ("pods/log",), (), seldom={"get": _ON_THE_HUB}),
        Grant("Whose a pod is, its owners say", "hub", "batch", ("jobs",), (), seldom={"get": _ON_THE_HUB}),
        Grant("Whose a pod is, its owners say", "hub", "jobset.x-k8s.io", ("jobsets",), (),
              seldom={"get": _ON_THE_HUB}),
        Grant("May this user? The hub's RBAC decides", "hub", "authorization.k8s.io", ("subjectaccessreviews",),
              ("create",)),
        Grant("Is this one of our fronts? Its token is reviewed", "hub", "authentication.k8s.io", ("tokenreviews",),
              ("create",)),
        Grant("The server's own authority, written where the API server looks for it", "hub", "apiregistration.k8s.io",
              ("apiservices",), ("get", "patch"), names=(_API_SERVICE,)),
    )),
    Role("MultiKueue's kubeconfigs of the workers, watched, so that rotated credentials count at once. To give away no "
         "other Secret, allow `get` alone, with their names in resourceNames: then each is read every 30 s",
         f"{SERVER}-workers", (SERVER,), (
        Grant("How Kueue reaches the workers", "hub", "", ("secrets",), ("watch",),
              seldom={**_UNSTREAMED, "get": "by name, until they are mirrored"}),
    ), namespace="kueue-system"),
    Role("The Secret of the serving certificate", f"{SERVER}-certificate", (SERVER, FRONT), (
        Grant("The one of that name", "hub", "", ("secrets",), ("get", "watch"), names=(f"{SERVER}-cert",),
              seldom={**_UNSTREAMED, "update": "the certificate is made anew before it ends"}),
        Grant("Whoever comes first makes it; `create` cannot be held to a name", "hub", "", ("secrets",), ("create",)),
    ), namespace=NAMESPACE),
    Role("The fronts: beside the certificate, the APIService that must trust them", FRONT, (FRONT,), (
        Grant("The authority, written where the API server looks for it", "hub", "apiregistration.k8s.io",
              ("apiservices",), ("get", "patch"), names=(_API_SERVICE,)),
    )),
)  # fmt: skip
"""All that they do; what is not here, they cannot do."""

LEGACY: Final = Role(
    "What the server reads of the older kinds of jobs. Take out what is not among its --legacy-kinds",
    f"{SERVER}-legacy",
    (SERVER,),
    (
        Grant("Where every job is: mirrored, and read anew for each answer", "hub", legacy_names.GROUP,
              tuple(BY_PLURAL), ("get", "watch"), seldom=_UNSTREAMED),
    ),
)  # fmt: skip
"""What the server does beside it where older kinds are enabled."""


def text() -> str:
    """Return the file with the accounts, the roles and who has them."""
    parts = [f"# Written by `make manifests` from deploy/hub_rbac.py: change that.\n{_dump(_account(SERVER))}"]
    parts.append(_dump(_account(FRONT)))
    parts += [part for role in ROLES for part in (_role(role), _dump(_binding(role)))]
    parts.append("# Who may speak for users: a ConfigMap of the cluster's.\n" + _dump(_authentication()))
    reader = _object("ClusterRole", f"{SERVER}-metrics-reader")
    reader["rules"] = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    parts.append(
        "# Who may read the server's metrics: bind it to Prometheus' account. They name clusters.\n" + _dump(reader)
    )
    return "---\n".join(parts)


def legacy_text() -> str:
    """Return the file with what the server and its users need for older kinds of jobs."""
    users = _object("ClusterRole", f"{SERVER}-legacy-view")
    users["metadata"]["labels"] = {f"{_RBAC}/aggregate-to-{name}": "true" for name in ("view", "edit", "admin")}
    jobs = {"apiGroups": [HUB_GROUP], "resources": list(BY_PLURAL), "verbs": ["get", "list"]}
    head = f"# Written by `make manifests` from deploy/hub_rbac.py: change that.\n{_role(LEGACY)}"
    why = "# For users: who may look into a namespace's pods may look at its dispatched jobs (user-roles.yaml).\n"
    rules = _indented(_dump([jobs])) + "".join(map(parts_of, BY_PLURAL))
    return "---\n".join([head, _dump(_binding(LEGACY)), f"{why}{_dump(users)}rules:\n{rules}"])


def parts_of(plural: str) -> str:
    """Return the rule with which users read what there is of a kind's jobs."""
    parts = [f"{plural}/{part}" for part in SUBRESOURCES]
    return _indented(_dump([{"apiGroups": [HUB_GROUP], "resources": parts, "verbs": ["get"]}]))


def _role(role: Role) -> str:
    """Return a role, with the reason of each rule above it."""
    tree = _object("Role" if role.namespace else "ClusterRole", role.name, role.namespace)
    rules = "".join(f"  # {grant.why}.\n{_indented(_dump([grant.rule()]))}" for grant in role.grants)
    return f"{_comment(role.why)}{_dump(tree)}rules:\n{rules}"


def _binding(role: Role) -> dict[str, Any]:
    kind = "Role" if role.namespace else "ClusterRole"
    tree = _object(f"{kind}Binding", role.name, role.namespace)
    return tree | _bound(kind, role.name, role.accounts)


def _authentication() -> dict[str, Any]:
    tree = _object("RoleBinding", f"{SERVER}-authentication", "kube-system")
    return tree | _bound("Role", "extension-apiserver-authentication-reader", (SERVER, FRONT))


def _bound(kind: str, role: str, accounts: tuple[str, ...]) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE} for name in accounts]
    return {"roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role}, "subjects": subjects}


def _account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}


def _object(kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata}


def _comment(why: str) -> str:
    sentences = f"{why}.".split(". ")
    return "".join(f"# {sentence.rstrip('.')}.\n" for sentence in sentences)


class _Dumper(yaml.SafeDumper):
    """Writes lists of words on one line, and lists of objects indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 PyYAML's
        super().increase_indent(flow, indentless=False)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=all(isinstance(i, str) for i in items))


_Dumper.add_representer(list, _list)


def _dump(tree: Any) -> str:
    made: str = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110)
    return made


def _indented(block: str) -> str:
    return "".join(f"  {line}\n" for line in block.splitlines())
