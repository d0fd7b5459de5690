"""Flux: a Flux instance across the nodes, which runs the training's command as one of its jobs.

An init container brings Flux into the pod, so the training's image needs none. The first node's broker runs the command
on all nodes with `flux run`; the others serve it. Scripts stand beside this file; a ConfigMap takes them to the pods,
with what is different in each TrainJob set at their top. How many nodes there are is settled by PlainML.

Brokers trust each other by one certificate, which is drawn once and kept in a Secret: whoever may read TrainJobs cannot
work it out.
"""

from __future__ import annotations

import base64
import functools
import shlex
from importlib import resources as files
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render import resources
from trainplane.render.findings import Finding
from trainplane.render.plan import CreateOnce
from trainplane.render.plugin import Plugin
from trainplane.render.rendezvous import rendezvous_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trainplane.api.document import Document
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan
    from trainplane.render.rendezvous import Rendezvous

_PORT: Final = 8050
"""Where brokers listen, unless the runtime says otherwise."""
_SETTINGS: Final = {
    names.FLUX_VIEW_IMAGE: "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy",
    names.FLUX_NETWORK_DEVICE: "eth0",
    names.FLUX_QUEUE_POLICY: "fcfs",
}
"""Variables of the training container that are settings of Flux, and what they are if nobody sets them."""
_CURVE: Final = "curve.cert"
"""The key of the Secret, and the file that brokers read."""
_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_CERTIFICATE: Final = """\
# ZeroMQ CURVE secret certificate
metadata
    name = "{name}"
curve
    public-key = "{public}"
    secret-key = "{secret}"
"""


class Flux(Plugin):
    """Serves runtimes with `mlPolicy.flux`."""

    name = "Flux"

    def enforce(self, plan: Plan) -> None:
        """Bring Flux into the pods, and let it run the command."""
        meeting = _meeting(plan)
        if meeting is None:
            return
        pods, container = meeting.pods, meeting.container
        scripts = names.flux_entrypoint_name(plan.name)
        pods.set_volumes(
            {"name": names.FLUX_SPACK_VOLUME, "emptyDir": {}},
            {"name": names.FLUX_INSTALL_VOLUME, "emptyDir": {}},
            {"name": scripts, "configMap": {"name": scripts, "defaultMode": 0o755}},
            {"name": names.FLUX_MEMORY_VOLUME, "emptyDir": {"medium": "Memory"}},
            {
                "name": names.FLUX_CURVE_VOLUME,
                "secret": {"secretName": names.flux_curve_name(plan.name), "defaultMode": 0o400},
            },
        )
        flux = {"name": names.FLUX_INSTALL_VOLUME, "mountPath": names.FLUX_INSTALL_MOUNT_PATH}
        script = {"name": scripts, "mountPath": names.FLUX_CONFIG_MOUNT_PATH, "readOnly": True}
        pods.set_init_containers(
            {
                "name": names.FLUX_INSTALLER,
                "image": _settings(meeting)[names.FLUX_VIEW_IMAGE],
                "command": ["/bin/bash", f"{names.FLUX_CONFIG_MOUNT_PATH}/init.sh"],
                "volumeMounts": [flux, script],
            }
        )
        container.set_mounts(
            flux,
            {"name": names.FLUX_SPACK_VOLUME, "mountPath": names.FLUX_SPACK_MOUNT_PATH},
            script,
            {"name": names.FLUX_CURVE_VOLUME, "mountPath": names.FLUX_CURVE_MOUNT_PATH, "readOnly": True},
            {"name": names.FLUX_MEMORY_VOLUME, "mountPath": names.FLUX_MEMORY_MOUNT_PATH},
        )
        line = _line([*container.command, *container.args])
        container.set("command", ["/bin/bash", f"{names.FLUX_CONFIG_MOUNT_PATH}/entrypoint.sh", line])
        container.set("args", None)

    def build(self, plan: Plan) -> Iterator[Tree | CreateOnce]:
        """Return the scripts, and ask for the certificate."""
        meeting = _meeting(plan)
        if meeting is None:
            return
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": names.flux_entrypoint_name(plan.name)},
            "data": {
                "init.sh": _script("flux_init.sh", _for_broker(plan, meeting)),
                "entrypoint.sh": _script("flux_entrypoint.sh", _for_training(plan, meeting)),
            },
        }
        name = names.flux_curve_name(plan.name)
        yield CreateOnce("v1", "Secret", name, functools.partial(_draw_certificate, plan.name), (_CURVE,))

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Refuse a runtime that has an init container of Flux's name, which would be replaced."""
        del old
        meeting = _meeting(plan)
        if meeting and any(container.name == names.FLUX_INSTALLER for container in meeting.pods.init_containers):
            problem = f"job {meeting.pods.name} of the runtime has one named {names.FLUX_INSTALLER}, which is the Flux "
            yield Finding("spec.trainer.initContainers", f"{problem}plugin's: rename it in the runtime")


def _meeting(plan: Plan) -> Rendezvous | None:
    is_meant = plan.policy is not None and plan.policy.flux is not None
    return rendezvous_of(plan, port=_PORT) if is_meant else None


def _settings(meeting: Rendezvous) -> dict[str, str]:
    said = {entry["name"]: entry["value"] for entry in meeting.container.env if entry.get("value")}
    return {name: said.get(name, default) for name, default in _SETTINGS.items()}


def _line(words: list[str]) -> str:
    """Return a command as one line for a shell. A single word is taken for a line already, as it was meant."""
    return words[0] if len(words) == 1 else shlex.join(words)


def _script(name: str, settings: Mapping[str, str]) -> str:
    body = files.files(__package__).joinpath(name).read_text(encoding="utf-8")
    head = "".join(f"{key}={shlex.quote(value)}\n" for key, value in settings.items())
    return f"#!/bin/bash\n{head}{body}"


def _for_broker(plan: Plan, meeting: Rendezvous) -> dict[str, str]:
    settings = _settings(meeting)
    return {
        "hosts": f"{_first_host(meeting).removesuffix('0')}[{_span(meeting.nodes)}]",
        "device": settings[names.FLUX_NETWORK_DEVICE],
        "port": str(meeting.port),
        "subdomain": plan.subdomain,
        "queue_policy": settings[names.FLUX_QUEUE_POLICY],
    }


def _for_training(plan: Plan, meeting: Rendezvous) -> dict[str, str]:
    """Return what the entrypoint needs: GPUs are a node's, and Flux asks for those of a task."""
    processes, gpus = _processes(plan), resources.gpus(meeting.container)
    have = f"--cores={_span(processes)}"
    tasks = f"-N {meeting.nodes} -n {meeting.nodes * processes}"
    if gpus:
        have += f" --gpus={_span(gpus)}"
    if gpus >= processes:
        tasks += f" -g {gpus // processes}"
    return {"lead": _first_host(meeting), "resources": have, "tasks": tasks}


def _processes(plan: Plan) -> int:
    """Return how many tasks each node runs: as the TrainJob says, else the runtime."""
    said = plan.trainer.num_proc_per_node if plan.trainer else None
    if not isinstance(said, int):
        said = plan.policy.flux.num_proc_per_node if plan.policy and plan.policy.flux else 1
    return max(1, said)


def _first_host(meeting: Rendezvous) -> str:
    return meeting.host.partition(".")[0]


def _span(count: int) -> str:
    """Return the numbers from 0 below a count, as Flux writes them."""
    return f"0-{count - 1}" if count > 1 else "0"


def _draw_certificate(name: str) -> Tree:
    """Draw the key pair by which brokers trust each other."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import (  # noqa: PLC0415 the operator alone draws keys
        X25519PrivateKey,
    )

    secret = X25519PrivateKey.generate()
    public = _z85(secret.public_key().public_bytes_raw())
    text = _CERTIFICATE.format(name=name, public=public, secret=_z85(secret.private_bytes_raw()))
    return {"data": {_CURVE: base64.b64encode(text.encode()).decode()}}


def _z85(data: bytes) -> str:
    """Write bytes as ZeroMQ does: four as five letters."""
    letters = []
    for start in range(0, len(data), 4):
        number = int.from_bytes(data[start : start + 4])
        letters += [_Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(letters)
