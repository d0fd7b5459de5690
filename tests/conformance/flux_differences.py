"""Differences that we want in Flux. Rows of `Declared`: id, what, reason, predicate.

Scripts and certificate are our own, so they are judged by what they must say: what the case sets, before the text that
is shipped; a pair of keys that fit.
"""

from __future__ import annotations

import base64
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

import trainplane.render.plugins
from tests.conformance import context as it
from tests.conformance.compare import ABSENT, tree_differences
from tests.conformance.rendered import is_zero
from trainplane.api.quantity import Quantity

if TYPE_CHECKING:
    from tests.conformance.cases import Case, Tree
    from tests.conformance.compare import Difference

_SHIPPED = Path(trainplane.render.plugins.__path__[0])
_BODIES = {"init.sh": "flux_init.sh", "entrypoint.sh": "flux_entrypoint.sh"}
_PORT = "8050"
_VIEW = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_KEYS = re.compile(r'metadata\n +name = "([^"]+)"\ncurve\n +public-key = "(.{40})"\n +secret-key = "(.{40})"\n$')


def is_of_flux(case: Case) -> bool:
    """Return whether a case is about a runtime of Flux."""
    return "flux" in it.policy(case)


# -- scripts ----------------------------------------------------------------------------------------------------------


def has_own_scripts(found: Difference) -> bool:
    """Match the text of a script that both have, and that sets what the case says."""
    file = found.path.removeprefix("data.")
    is_script = found.place.endswith("-flux-entrypoint") and file in _BODIES
    return is_script and found.reference != ABSENT and bool(found.ours == _scripts(found.case)[file])


def _scripts(case: Case) -> dict[str, str]:
    host, _, subdomain = it.address(case).partition(".")
    nodes, said = it.nodes(case), {one["name"]: one.get("value", "") for one in _said(case)}
    processes = int(it.trainer(case).get("numProcPerNode") or it.policy(case)["flux"].get("numProcPerNode") or 1)
    gpus = _gpus(case)
    tasks = f"-N {nodes} -n {nodes * processes}" + (f" -g {gpus // processes}" if gpus >= processes else "")
    settings = {
        "init.sh": {
            "hosts": f"{host.removesuffix('0')}[{_span(nodes)}]",
            "device": said.get("FLUX_NETWORK_DEVICE") or "eth0",
            "port": _PORT,
            "subdomain": subdomain,
            "queue_policy": said.get("FLUX_QUEUE_POLICY") or "fcfs",
        },
        "entrypoint.sh": {
            "lead": host,
            "resources": f"--cores={_span(processes)}" + (f" --gpus={_span(gpus)}" if gpus else ""),
            "tasks": tasks,
        },
    }
    return {file: _script(file, values) for file, values in settings.items()}


def _script(file: str, settings: dict[str, str]) -> str:
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items())
    return f"#!/bin/bash\n{head}{(_SHIPPED / _BODIES[file]).read_text()}"


def _said(case: Case) -> list[Tree]:
    """Return the variables of a node: the runtime's, then the TrainJob's."""
    return [*it.node(case).get("env", ()), *it.trainer(case).get("env", ())]


def _gpus(case: Case) -> int:
    given, asked = it.node(case).get("resources", {}), it.trainer(case).get("resourcesPerNode") or {}
    sides = [{**given.get(side, {}), **asked.get(side, {})} for side in ("requests", "limits")]
    totals = [sum(Quantity.of(one).value() for name, one in side.items() if "gpu" in name) for side in sides]
    return totals[0] or totals[1]


def _span(count: int) -> str:
    return f"0-{count - 1}" if count > 1 else "0"


# -- the certificate --------------------------------------------------------------------------------------------------


def has_drawn_key(found: Difference) -> bool:
    """Match another certificate of the same name, whose keys fit, and which no apply owns."""
    if not found.place.endswith("-flux-curve"):
        return False
    if found.path == "owned":
        return bool(found.ours == ABSENT)
    return found.path == "data.curve.cert" and found.reference != ABSENT and _is_certificate(found)


def _is_certificate(found: Difference) -> bool:
    said = _KEYS.search(base64.b64decode(found.ours).decode()) if found.ours != ABSENT else None
    if said is None or said[1] != it.job(found.case)["metadata"]["name"]:
        return False
    secret = X25519PrivateKey.from_private_bytes(_bytes(said[3]))
    return secret.public_key().public_bytes_raw() == _bytes(said[2])


def _bytes(text: str) -> bytes:
    """Return what ZeroMQ writes five letters for four bytes of."""
    groups = [text[start : start + 5] for start in range(0, len(text), 5)]
    numbers = [sum(_Z85.index(letter) * 85 ** (4 - place) for place, letter in enumerate(group)) for group in groups]
    return b"".join(number.to_bytes(4) for number in numbers)


# -- pods -------------------------------------------------------------------------------------------------------------


def may_write_memory(found: Difference) -> bool:
    """Match the shared memory that the reference lets nobody write to."""
    is_memory = "shared-memory" in found.path or "/dev/shm" in found.path
    return is_memory and found.path.endswith("readOnly") and found.ours == ABSENT


def keeps_words(found: Difference) -> bool:
    """Match the command as one line that a shell takes apart into its words, and the runtime's args in it."""
    if not (it.within(found, "JobSet")):
        return False
    words = _words(found.case)
    if it.in_node(found, "args"):
        given = it.node(found.case).get("args", ABSENT)
        return found.ours == ABSENT != given and (it.is_owned(found) or bool(found.reference == given))
    if not found.path.endswith("command[2]"):
        return False
    return shlex.split(found.ours) == words and found.ours != found.reference


def _words(case: Case) -> list[Any]:
    node = next(one for one in it.containers(case) if one["name"] == "node")
    trainer = it.trainer(case)
    both = [trainer.get(key, node.get(key)) or [] for key in ("command", "args")]
    return [word for words in both for word in words]


def is_set_up(found: Difference) -> bool:
    """Match Flux's volumes, mounts and installer in the pods that train, where their job is not called `node`."""
    job = it.entry(found, "replicatedJobs")
    if not it.within(found, "JobSet") or job == "node" or job not in it.training(found.case)[:1]:
        return False
    field = found.path.rpartition("template.f:spec." if it.is_owned(found) else "template.spec.")[2]
    match = re.fullmatch(r"(?:f:)?(?:containers(?:\[node]|\.k:{\"name\":\"node\"})\.(?:f:)?)?(\w+)(\.k:{.*})?", field)
    added = _added(found.case).get(match[1], []) if match else []
    if it.is_owned(found):
        marks = {f'k:{{"{key}":"{one[key]}"}}' for one in added for key in ("mountPath", "name") if key in one}
        return bool(marks) and found.reference == ABSENT and it.keys(found, match[1] if match else "") <= marks
    if not added or not isinstance(found.ours, list) or any(one not in found.ours for one in added):
        return False
    theirs = [] if found.reference == ABSENT else found.reference
    others = tree_differences(theirs, [one for one in found.ours if one not in added])
    return all(reference == ABSENT and is_zero(ours) for _, reference, ours in others)


def _added(case: Case) -> dict[str, list[Tree]]:
    """Return what Flux needs of pods, by the field of a pod or container that has it."""
    scripts, said = f"{it.job(case)['metadata']['name']}-flux-entrypoint", _said(case)
    installs, settings = (
        {"name": "flux-install", "mountPath": "/mnt/flux"},
        {"name": scripts, "mountPath": "/etc/flux-config", "readOnly": True},
    )
    view = next((one["value"] for one in reversed(said) if one["name"] == "FLUX_VIEW_IMAGE"), _VIEW)
    return {
        "volumes": [
            {"name": "spack-install", "emptyDir": {}},
            {"name": "flux-install", "emptyDir": {}},
            {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
            {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
            {
                "name": "flux-curve",
                "secret": {"secretName": scripts.replace("entrypoint", "curve"), "defaultMode": 0o400},
            },
        ],
        "volumeMounts": [
            installs,
            {"name": "spack-install", "mountPath": "/opt/software"},
            settings,
            {"name": "flux-curve", "mountPath": "/curve", "readOnly": True},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
        ],
        "initContainers": [
            {
                "name": "flux-installer",
                "image": view,
                "command": ["/bin/bash", "/etc/flux-config/init.sh"],
                "volumeMounts": [installs, settings],
            }
        ],
    }


def breaks(case: Case) -> bool:
    """Tell if the reference breaks at every reconcile of a case: Flux without the TrainJob's number of nodes."""
    return is_of_flux(case) and "numNodes" not in it.trainer(case)


def is_made_at_all(found: Difference) -> bool:
    """Match the objects of a job for which the reference breaks, without its number of nodes, as they must be."""
    if not breaks(found.case) or found.reference != ABSENT:
        return False
    if (found.place.partition(" ")[0], found.path) == ("TrainJob", "status"):
        said = [(one["type"], one["status"]) for one in found.ours.get("conditions", ())]
        return said == ([("Suspended", "True")] if it.said_of_suspend(found)[-1:] == [True] else [])
    if found.path != "":
        return False
    if it.within(found, "ConfigMap"):
        return bool(found.ours["data"] == _scripts(found.case))
    if it.within(found, "Secret"):
        certificate = replace(found, ours=found.ours["data"].get("curve.cert", ABSENT))
        return _is_certificate(certificate)
    jobs = found.ours["spec"]["replicatedJobs"] if it.within(found, "JobSet") else []
    training = it.training(found.case)
    counts = [job["template"]["spec"].get("parallelism") for job in jobs if job["name"] in training]
    return bool(jobs) and counts == [it.nodes(found.case) for _ in training]


ROWS = (
    (
        "flux-scripts",
        "the text of Flux's scripts",
        "they are our own: they honour the subdomain and any cluster domain, and share GPUs out among tasks",
        has_own_scripts,
    ),
    (
        "flux-drawn-key",
        "Flux's certificate is drawn at random, once, and no apply owns it",
        "the reference makes it from the TrainJob's uid, which whoever reads TrainJobs knows (§11.7)",
        has_drawn_key,
    ),
    (
        "flux-memory",
        "Flux's `/dev/shm` can be written to",
        "shared memory that is read-only is of no use (§11.7)",
        may_write_memory,
    ),
    (
        "flux-words",
        "Flux runs the command word for word, the runtime's `args` among them",
        "the reference joins the words with spaces and lets a shell split them anew",
        keeps_words,
    ),
    (
        "flux-without-nodes",
        "a Flux job without `spec.trainer.numNodes` runs on the runtime's nodes",
        "the reference breaks at every reconcile (§11.7)",
        is_made_at_all,
    ),
    (
        "flux-any-job",
        "Flux is set up in the pods of the job that trains, whatever that is called",
        "the reference looks for a job `node`: any other gets Flux's command and nothing that it needs",
        is_set_up,
    ),
)
