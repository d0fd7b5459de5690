"""Requests are counted right: a bench whose count misses some, or takes one's for another's, would prove nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.life import requests

if TYPE_CHECKING:
    from pathlib import Path

Tree = dict[str, Any]
OURS = "system:serviceaccount:kubeflow-system:operator"


def _event(verb: str, resource: str = "trainjobs", *, user: str = OURS, code: int = 200, **more: Any) -> Tree:
    thing = {"resource": resource, **({"subresource": more.pop("part")} if "part" in more else {})}
    event = {"stage": "ResponseComplete", "verb": verb, "requestURI": "/", "user": {"username": user}}
    return {**event, "objectRef": thing, "responseStatus": {"code": code}, **more}


def test_accounts_engines_and_users_are_told_apart() -> None:
    engine = _event("get", user="lab-admin", userAgent="kueue/v0.19.0 (linux/amd64)")
    assert [requests.who(one) for one in (_event("get"), engine, _event("get", user="system:kube-scheduler"))] == [
        "operator",
        "kueue",
        "kube-scheduler",
    ]


def test_parts_refusals_and_dry_runs_are_told_apart() -> None:
    dry = _event("create", "workloads", requestURI="/apis/x/workloads?dryRun=All", code=201)
    assert requests.what(_event("patch", part="status")) == "patch trainjobs/status"
    assert requests.what(_event("patch", part="status", code=409)) == "patch trainjobs/status (409)"
    assert requests.what(dry) == "create workloads (dry run)"


def test_what_comes_with_time_is_not_counted_and_no_request_twice() -> None:
    events = [
        _event("patch"),
        _event("patch", stage="ResponseStarted"),
        _event("watch"),
        _event("update", "leases"),
        _event("get", objectRef=None),
        _event("get", "jobsets", code=404),
    ]
    counts = requests.count(events)
    assert counts == {"operator": {"patch trainjobs": 1, "get jobsets (404)": 1}}
    assert requests.total(counts, ["operator", "nobody"]) == 2


def test_watches_tell_what_somebody_follows() -> None:
    events = [_event("watch", "jobsets"), _event("get", "pods"), _event("watch", "nodes", user="system:other")]
    assert requests.follows(events, "operator") == {"jobsets"}


def test_a_log_is_read_on_and_half_a_line_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    first, second, third = (json.dumps({"number": number}) for number in range(3))
    path.write_text(f"{first}\n")
    log = requests.Log(path)
    with path.open("a") as file:
        file.write(f"{second}\n{third[:4]}")
    assert log.more() == [{"number": 1}]
    with path.open("a") as file:
        file.write(f"{third[4:]}\n")
    assert log.more() == [{"number": 2}]
    assert log.more() == []
