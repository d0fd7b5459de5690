"""What others say of a failure to the same user: `kubectl describe`, the reference's status, the official SDK.

**The rule.** What somebody says comes in pieces: an object that is described, a status, an event, a step's log. A
failure is named if one piece has its telling fact (`FACTS`), in whatever words, and says whose it is: the step, or its
pod by name. A remedy is not asked for: none of them has one. The same rule is put to our own explanation.

Facts are written so that neither a TrainJob's name nor its command is one: `describe` shows both.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from lab.cluster import Cluster
    from tests.explain.failures import Failure
    from tests.sdk.official.sdk import Sdk

Pieces = list[str]
PEERS: Final = ("kubectl", "reference", "official_sdk")

FACTS: Final = {
    "traceback": r"KeyError",
    "traceback-gone": r"ValueError: invalid literal",
    "exit-code": r"(?i)exit ?code\"?:?\s*3\b",
    "module": r"No module named",
    "entrypoint": r"trian.*no such file|exec.*not found",
    "script": r"can't open file",
    "arguments": r"unrecognized arguments",
    "architecture": r"exec format error",
    "crash": r"\b139\b|(?i:segmentation fault)|crashed in native code",
    "killed": r"\b137\b|SIGKILL",
    "initializer": r"RuntimeError: no such dataset",
    "crash-loop": r"ValueError: no rows",
    "memory": r"OOMKilled|more memory than",
    "disk": r"No space left",
    "evicted": r"(?i)usage of emptydir volume|was evicted",
    "port": r"already in use",
    "permission": r"Permission denied",
    "file": r"No such file or directory: '/workspace/dataset",
    "world-size": r"DistStoreError: Timed out",
    "name": r"gaierror: |name resolution",
    "refused": r"Connection refused",
    "certificate": r"certificate has expired",
    "straggler": r"(?i)behind|straggler:? is|slower",
    "drained": r"EvictionByEvictionAPI|evicted by",
    "deadline": r"DeadlineExceeded|longer than",
    "image": r"(?i)failed to pull|ImagePullBackOff|cannot be pulled",
    "unschedulable": r"Insufficient cpu",
    "claim": r"persistentvolumeclaim \"none\" not found",
    "secret": r"secret \"no-such\" not found",
    "configmap": r"configmap \"no-such\" not found",
    "mount": r"hostPath type check failed",
    "quota": r"exceeded quota",
    "denied": r"violates PodSecurity",
    "webhook": r"failed calling webhook",
    "suspended": r"(?i)suspend:\s+true|is suspended|held by spec\.suspend|\"reason\": \"Suspended\"",
    "gloo-hang": r"(?i)stands still|hangs",
    "gloo-lost": r"\b137\b|SIGKILL",
    "gloo-error": r"KeyError",
}
"""By failure, as a pattern: what must be said for it to be known."""


def is_named(failure: Failure, pieces: Iterable[str]) -> bool:
    """Return whether what was said names a failure, by this module's rule."""
    fact = re.compile(FACTS[failure.name])
    role, _, index = failure.step.rpartition("-")
    pod = f"{failure.name}-{role}-0-{index}" if role == "node" else f"{failure.name}-{failure.step}-0-0"
    whose = re.compile(rf"\b{failure.step}\b(?!-\d)|{pod}-")
    return any(fact.search(piece) and (not failure.step or whose.search(piece)) for piece in pieces)


def owner_of(name: str, failures: Sequence[Failure]) -> str:
    """Return the failure that an object of this name belongs to; empty if none."""
    found = [one.name for one in failures if name == one.name or re.match(rf"{one.name}-(node|dataset-init)", name)]
    return found[0] if found else ""


def described(cluster: Cluster, kubeconfig: Path, namespace: str, failures: Sequence[Failure]) -> dict[str, Pieces]:
    """Return what `kubectl describe` prints of all that failures are made of: each object is a piece."""
    kinds, shown = "trainjobs,jobsets,jobs,pods", "--show-events=true"
    text = cluster.kubectl("describe", kinds, shown, f"--kubeconfig={kubeconfig}", f"--namespace={namespace}").stdout
    told: dict[str, Pieces] = defaultdict(list)
    for piece in re.split(r"(?m)^(?=Name: )", text):
        named = re.match(r"Name:\s+(\S+)", piece)
        if named:
            told[owner_of(named[1], failures)].append(piece)
    return told


def statuses(cluster: Cluster, namespace: str) -> dict[str, Pieces]:
    """Return what the TrainJobs' statuses say: each is one piece."""
    jobs = cluster.get("trainjobs", f"--namespace={namespace}")["items"]
    return {job["metadata"]["name"]: [json.dumps(job.get("status") or {}, indent=1)] for job in jobs}


_ASKED: Final = """
def told(name):
    job = client.get_job(name)
    logs = {}
    for step in job.steps:
        try:
            logs[step.name] = list(client.get_job_logs(name, step=step.name))
        except Exception as error:
            logs[step.name] = [str(error)]
    return {"job": repr(job), "events": client.get_job_events(name), "logs": logs}

found = {}
for name in names:
    try:
        found[name] = told(name)
    except Exception as error:
        found[name] = {"job": str(error), "events": [], "logs": {}}
found
"""


def by_sdk(sdk: Sdk, namespace: str, failures: Sequence[Failure]) -> dict[str, Pieces]:
    """Return what the official SDK says: the job, each event, the log of each step."""
    answers: dict[str, dict[str, Any]] = sdk.run(_ASKED, namespace=namespace, names=[one.name for one in failures])
    return {
        name: [
            answer["job"],
            *(f"{event['involved_object_name']}: {event['reason']}: {event['message']}" for event in answer["events"]),
            *("\n".join((step, *lines)) for step, lines in answer["logs"].items()),
        ]
        for name, answer in answers.items()
    }
