"""Compares roles with the API server's audit log: what was granted and never used, what was asked and denied.

The log names the verb of each request. Server-side apply is `patch`, and needs `create` too where the object was not
there yet: that shows as the answer 201.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DECISION: Final = "authorization.k8s.io/decision"
_ACCOUNT: Final = "system:serviceaccount:"
_CREATED: Final = 201


@dataclass(frozen=True)
class Request:
    """What an account asked of the API server."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    allowed: bool


@dataclass(frozen=True)
class Grant:
    """One verb on one resource, for one account; in one namespace, or wherever it is empty."""

    account: str
    verb: str
    group: str
    resource: str
    namespace: str = ""
    names: tuple[str, ...] = ()

    def covers(self, request: Request) -> bool:
        """Return whether the request is one that this grant allows."""
        return (
            (self.account, self.verb, self.group, self.resource)
            == (request.account, request.verb, request.group, request.resource)
            and self.namespace in {"", request.namespace}
            and (not self.names or request.name in self.names)
        )

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        named = f" named {', '.join(self.names)}" if self.names else ""
        return f"{self.account} may {self.verb} {self.resource}.{self.group}{named}{where}".replace(". ", " ").rstrip(
            "."
        )


def requests(events: Iterable[dict[str, Any]]) -> Iterator[Request]:
    """Return what service accounts asked for, by the events of a log."""
    for event in events:
        user = event.get("user", {}).get("username", "")
        asked = event.get("objectRef")
        if user.startswith(_ACCOUNT) and asked:
            yield from _of(user.removeprefix(_ACCOUNT), event, asked)


def _of(account: str, event: dict[str, Any], asked: dict[str, str]) -> Iterator[Request]:
    resource = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource"))))
    allowed = event.get("annotations", {}).get(_DECISION, "allow") == "allow"
    place = (asked.get("apiGroup", ""), resource, asked.get("namespace", ""), asked.get("name", ""), allowed)
    yield Request(account, event["verb"], *place)
    if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == _CREATED:
        yield Request(account, "create", *place)


def grants(documents: Iterable[dict[str, Any]]) -> set[Grant]:
    """Return what roles and bindings grant to service accounts, verb by verb; roles of others are theirs."""
    trees = list(documents)
    roles = {_key(tree): tree["rules"] for tree in trees if tree["kind"] in {"Role", "ClusterRole"}}
    found = set()
    for binding in trees:
        if not binding["kind"].endswith("Binding"):
            continue
        namespace = binding["metadata"].get("namespace", "")
        ref = binding["roleRef"]
        rules = roles.get((ref["kind"], ref["name"], namespace if ref["kind"] == "Role" else ""), ())
        for subject in binding["subjects"]:
            account = f"{subject.get('namespace', '')}:{subject['name']}"
            found |= {grant for rule in rules for grant in _expanded(account, namespace, rule)}
    return found


def _key(tree: dict[str, Any]) -> tuple[str, str, str]:
    return tree["kind"], tree["metadata"]["name"], tree["metadata"].get("namespace", "")


def _expanded(account: str, namespace: str, rule: dict[str, Any]) -> Iterator[Grant]:
    names = tuple(rule.get("resourceNames", ()))
    for group in rule.get("apiGroups", ()):
        for resource in rule.get("resources", ()):
            for verb in rule["verbs"]:
                yield Grant(account, verb, group, resource, namespace, names)


def unused(granted: Iterable[Grant], asked: Iterable[Request]) -> list[Grant]:
    """Return the grants that no request needed."""
    allowed = {request for request in asked if request.allowed}
    return sorted((one for one in granted if not any(map(one.covers, allowed))), key=str)


def denied(granted: Iterable[Grant], asked: Iterable[Request]) -> list[Request]:
    """Return the requests of the grants' accounts that were refused for want of a right.

    What a grant covers and was refused all the same was asked of an API server that had just started and did not know
    its roles yet; it is asked again.
    """
    known = list(granted)
    ours = {grant.account for grant in known}
    refused = {request for request in asked if not request.allowed and request.account in ours}
    return sorted((one for one in refused if not any(grant.covers(one) for grant in known)), key=str)
