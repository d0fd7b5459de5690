from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from lab import audit
from tests.grants.comparison import Grant, Request, denied, grants, requests, unused

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = "ours:operator"
ROLE = {
    "kind": "ClusterRole",
    "metadata": {"name": "operator"},
    "rules": [
        {"apiGroups": ["jobset.x-k8s.io"], "resources": ["jobsets"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["cert"], "verbs": ["get"]},
    ],
}
BINDING = {
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "operator"},
    "roleRef": {"kind": "ClusterRole", "name": "operator"},
    "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "ours"}],
}


def event(verb: str, resource: str, *, code: int = 200, decision: str = "allow", **place: str) -> dict[str, Any]:
    return {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:{OPERATOR}"},
        "objectRef": {"resource": resource, **place},
        "responseStatus": {"code": code},
        "annotations": {"authorization.k8s.io/decision": decision},
    }


def log(folder: Path, *events: dict[str, Any]) -> list[Request]:
    path = folder / "audit.log"
    path.write_text("".join(json.dumps(one) + "\n" for one in events) + '{"half": ')
    return list(requests(audit.read(path)))


def test_roles_are_spelled_out_verb_by_verb() -> None:
    assert grants([ROLE, BINDING]) == {
        Grant(OPERATOR, "create", "jobset.x-k8s.io", "jobsets"),
        Grant(OPERATOR, "patch", "jobset.x-k8s.io", "jobsets"),
        Grant(OPERATOR, "get", "", "secrets", names=("cert",)),
    }


def test_an_apply_that_made_the_object_used_create_too(tmp_path: Path) -> None:
    asked = log(tmp_path, event("patch", "jobsets", apiGroup="jobset.x-k8s.io", namespace="team", name="a", code=201))
    assert [grant.resource for grant in unused(grants([ROLE, BINDING]), asked)] == ["secrets"]


def test_an_apply_that_changed_the_object_did_not(tmp_path: Path) -> None:
    asked = log(tmp_path, event("patch", "jobsets", apiGroup="jobset.x-k8s.io", namespace="team", name="a"))
    assert [str(grant) for grant in unused(grants([ROLE, BINDING]), asked)] == [
        "ours:operator may create jobsets.jobset.x-k8s.io",
        "ours:operator may get secrets named cert",
    ]


def test_a_name_is_used_only_by_that_name(tmp_path: Path) -> None:
    others = log(tmp_path, event("get", "secrets", namespace="ours", name="other"))
    own = log(tmp_path, event("get", "secrets", namespace="ours", name="cert"))
    grant = Grant(OPERATOR, "get", "", "secrets", "ours", ("cert",))
    assert (unused([grant], others), unused([grant], own)) == ([grant], [])


def test_what_was_denied_is_told_and_uses_nothing(tmp_path: Path) -> None:
    asked = log(tmp_path, event("get", "secrets", namespace="ours", name="cert", decision="forbid", code=403))
    others = Grant(OPERATOR, "get", "", "secrets", names=("other",))
    (refused,) = denied([others], asked)
    assert (refused.verb, refused.resource, refused.name) == ("get", "secrets", "cert")
    assert unused([Grant(OPERATOR, "get", "", "secrets")], asked)


def test_an_api_server_that_does_not_know_its_roles_yet_denies_nothing(tmp_path: Path) -> None:
    asked = log(tmp_path, event("get", "secrets", namespace="ours", name="cert", decision="forbid", code=403))
    assert denied([Grant(OPERATOR, "get", "", "secrets")], asked) == []


def test_what_others_are_denied_is_not_ours(tmp_path: Path) -> None:
    asked = log(tmp_path, event("get", "secrets", namespace="ours", name="cert", decision="forbid", code=403))
    assert denied([Grant("ours:hub", "get", "", "pods")], asked) == []


def test_a_subresource_is_another_thing(tmp_path: Path) -> None:
    asked = log(tmp_path, event("patch", "trainjobs", subresource="status", apiGroup="g", namespace="team", name="a"))
    assert unused([Grant(OPERATOR, "patch", "g", "trainjobs/status")], asked) == []
    assert unused([Grant(OPERATOR, "patch", "g", "trainjobs")], asked)
