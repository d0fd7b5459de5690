"""Events as `kubectl` shows them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.integration.kube.support import CONFIGMAPS, configmap
from trainplane.kube.clock import SystemClock
from trainplane.kube.events import EventRecorder, ObjectReference
from trainplane.kube.resource import NAMESPACES

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from trainplane.kube.client import Client


async def test_repeats_are_counted_and_shown_with_the_object(cluster: Cluster, client: Client, namespace: str) -> None:
    about = ObjectReference.of(await client.create(CONFIGMAPS, configmap("job", namespace)))
    recorder = EventRecorder(client, SystemClock(), "trainplane-test")
    running = asyncio.create_task(recorder.run())
    recorder.record(about, "Normal", "Started", "The job began.")
    for _ in range(3):
        recorder.record(about, "Warning", "Failed", "A worker ended with 137.")
        await recorder.drain()
    recorder.record(about, "Warning", "Failed", "x" * 5000, action="Restart")
    await recorder.drain()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert recorder.dropped == 0

    items = cluster.get("events", "-n", namespace, "--field-selector=involvedObject.name=job")["items"]
    events = {item["message"][:8]: item for item in items}
    assert {text: event["count"] for text, event in events.items()} == {"The job ": 1, "A worker": 3, "xxxxxxxx": 1}
    worker = events["A worker"]
    assert worker["source"]["component"] == worker["reportingComponent"] == "trainplane-test"
    assert worker["involvedObject"]["uid"] == about.uid
    first, last = (datetime.fromisoformat(worker[field]) for field in ("firstTimestamp", "lastTimestamp"))
    assert first <= last <= datetime.now(UTC) + timedelta(seconds=1)
    assert len(events["xxxxxxxx"]["message"]) == 1024

    shown = cluster.kubectl("events", "-n", namespace, "--for=configmap/job").stdout
    assert "(x3 over" in next(line for line in shown.splitlines() if "ended with 137" in line)
    columns, *rows = cluster.kubectl("get", "events", "-n", namespace, "-o", "wide").stdout.splitlines()
    assert "<unknown>" not in next(row for row in rows if "ended with 137" in row)
    assert "COUNT" in columns
    described = cluster.kubectl("describe", "configmap", "job", "-n", namespace).stdout
    assert "The job began." in described.partition("Events:")[2]


async def test_cluster_scoped_objects_have_events_too(cluster: Cluster, client: Client, namespace: str) -> None:
    about = ObjectReference.of(await client.get(NAMESPACES, namespace))
    recorder = EventRecorder(client, SystemClock(), "trainplane-test")
    running = asyncio.create_task(recorder.run())
    recorder.record(about, "Normal", "Seen", "Somebody looked.")
    await recorder.drain()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    (event,) = cluster.get("events", "-n", "default", f"--field-selector=involvedObject.uid={about.uid}")["items"]
    assert (event["reason"], event["count"]) == ("Seen", 1)
