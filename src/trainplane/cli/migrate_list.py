"""`trainplane migrate --all --dry-run`: a cluster's older jobs, in the order to go. Reads only, to a bound."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from trainplane.cli.older import asked, initializers, resources
from trainplane.cli.output import Output

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from trainplane.cli.connection import Connection
    from trainplane.kube.client import Client
    from trainplane.kube.resource import Resource
    from trainplane.legacy.migrate.inventory import Entry

_TURNS = {
    "first": "Runtimes first: TrainJobs name them.",
    "waiting": "Then what waits: nothing is lost by moving it.",
    "running": "What runs, when it is over: a TrainJob begins anew, or at the checkpoint that its program finds.",
    "finished": "What is finished, last: nothing to move; delete it when nobody reads it any more.",
    "stays": "What cannot be moved as it is: it is served as before.",
}
MOST_OBJECTS = 10_000
"""Objects of one kind that are read of a cluster: more than anybody reads a list of."""
_PAGE = 100
"""Objects that are asked for at once."""


def show_cluster(connection: Connection, gang: str, *, form: str, all_namespaces: bool) -> int:
    """Look, print, return the exit code: 1 if something is refused or could not be read."""
    from trainplane.legacy.migrate.inventory import entry_of, ordered  # noqa: PLC0415 heavy

    entry = functools.partial(entry_of, gang=gang, initializers=initializers())
    entries: list[Entry] = []
    unseen: dict[str, str] = {}

    async def look(client: Client) -> None:
        for resource in resources():
            if not resource.namespaced and not all_namespaces:
                continue  # no namespace's own, and a tenant may not list them
            namespace = None if all_namespaces else connection.namespace or client.namespace
            entries.extend([entry(source) async for source in _objects(client, resource, namespace, unseen)])

    asked(connection, look)
    found, output = ordered(entries), Output(sys.stdout)
    if form == "json":
        output.json({"objects": [_row(one) for one in found], "unseen": unseen})
    else:
        show_list(found, unseen, output)
    return 1 if unseen or any(one.refused for one in found) else 0


def show_list(entries: list[Entry], unseen: dict[str, str], output: Output) -> None:
    """Print what a cluster has, in the order to go, for people."""
    for turn, heading in _TURNS.items():
        group = [one for one in entries if one.turn == turn]
        if not group:
            continue
        output.line(f"{heading} ({len(group)})", bold=True)
        for one in group:
            _show_entry(one, output)
        output.line("")
    for plural, why in unseen.items():
        output.item("?", "yellow", f"{plural} ", f"could not be read: {why}", indent=0)
    if not entries and not unseen:
        output.line("There are no older jobs.", colour="green")


def _show_entry(one: Entry, output: Output) -> None:
    place = f"{one.namespace}/{one.name}" if one.namespace else one.name
    queued = f", in queue {one.queue}: it lines up anew" if one.queue and one.turn != "finished" else ""
    if one.refused:
        reasons = "; ".join(map(str, one.refused[:3]))
        output.item("✗", "red", f"{one.kind} {place}{queued}: ", reasons, indent=2)
        return
    on = f"on {one.runtime}" if one.runtime else "with a runtime of its own"
    changes = f"changes {', '.join(one.changes)}" if one.changes else "nothing changes"
    output.item("·", "", f"{one.kind} {place} ", f"{on}{queued}; {changes}", indent=2)


def _row(one: Entry) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "namespace": one.namespace,
        "name": one.name,
        "turn": one.turn,
        "queue": one.queue,
        "runtime": one.runtime,
        "changes": list(one.changes),
        "refused": list(map(str, one.refused)),
    }


async def _objects(
    client: Client, resource: Resource, namespace: str | None, unseen: dict[str, str]
) -> AsyncIterator[Any]:
    """Yield the objects of a resource, page by page, to a bound; what may not be read is noted."""
    from trainplane.kube.errors import ApiError, NotFoundError  # noqa: PLC0415 heavy

    count = 0
    try:
        async for page in client.list_pages(resource, namespace, limit=_PAGE):
            for item in page.items:
                count += 1
                yield _decoded(bytes(item), resource)
            if count >= MOST_OBJECTS and page.next:
                unseen[resource.plural] = f"there are more than {count}: look at one namespace at a time"
                return
    except NotFoundError:
        return  # the kind is not installed
    except ApiError as error:
        unseen[resource.plural] = str(error)


def _decoded(data: bytes, resource: Resource) -> Any:
    """Return an object of a list, which says its kind once for all; one that is too large to be read is bare."""
    from trainplane.api.document import decode_tree  # noqa: PLC0415 heavy
    from trainplane.api.errors import DecodeError  # noqa: PLC0415 heavy

    try:
        tree = decode_tree(data)
    except DecodeError:
        tree = {}
    return {"apiVersion": resource.api_version, "kind": resource.kind, **tree}
