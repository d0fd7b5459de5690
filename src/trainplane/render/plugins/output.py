"""Output: a container beside the training that sends what was trained to where the TrainJob's annotation says.

It stands in the pods that train and asks for no resources, so what Kueue counts is what runs. Training writes to
`/workspace/output` (`OUTPUT_DIR`), on the volume that the runtime mounts there or above, else on one of the pod's own.
The sender mounts it in the same way, sees checkpoints as they come, and ends when all is sent; so the pod, and with it
the JobSet, ends no sooner (`operator.progress.training` tells the sender when training has ended).

It works before `TrainJobStatus`, which then gives the sender what it asks the operator with, as any other container.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.objectname import is_object_name
from trainplane.api.output import OutputUriError, output_of
from trainplane.render.claims import mount_claim
from trainplane.render.findings import Finding
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.provenance import trainjob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.output import OutputUri
    from trainplane.api.trainjob import InitializerSource, TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Container, Plan, PodSet

COMMAND: Final = ["python", "-m", "trainplane.initializers", "output"]
_AT: Final = f"metadata.annotations[{names.ANNOTATION_OUTPUT}]"
_SECRET_AT: Final = f"metadata.annotations[{names.ANNOTATION_OUTPUT_SECRET}]"
_REVISION: Final = "REVISION"
_LONGEST: Final = 2048
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@]*@|[?#].*", re.DOTALL)
"""The parts of a URI that credentials travel in: what produced an output is published with it."""
_USER: Final = ("runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile")
"""What the sender takes over of the training's securityContext: who wrote the files may read them."""


class Output(Plugin):
    """Lets TrainJobs with an output have a sender.

    Args:
        image: the image that has the program.
        can_ask: whether the operator serves what the sender asks for the end of training.
    """

    name = "Output"

    def __init__(self, image: str, *, can_ask: bool) -> None:
        self._image = image
        self._can_ask = can_ask

    def enforce(self, plan: Plan) -> None:
        """Add the sender to the pods that train, and tell both containers where output is written."""
        uri = _wanted(plan)
        pods, trains = plan.trainer_set, plan.trainer_container
        if uri is None or pods is None or trains is None or not self._can_ask:
            return
        mount = _mount_of(trains)
        if mount is None:
            mount = {"name": names.OUTPUT, "mountPath": names.PATH_OUTPUT}
            pods.set_volumes({"name": names.OUTPUT, "emptyDir": {}})
            trains.set_mounts(mount)
        place = {"name": names.ENV_OUTPUT_DIR, "value": names.PATH_OUTPUT}
        trains.set_env(*plan.env_not_overridden((place,)))
        pods.add_containers(self._sender(plan, pods, uri, mount, place))
        sender = pods.container(names.OUTPUT)
        if uri.claim is not None and sender is not None:
            volume = f"{names.OUTPUT}-claim"
            mount_claim(pods, sender, uri.claim, read_only=False, origin=trainjob(_AT), volume=volume)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding | str]:
        """Judge the annotations of a new TrainJob; they never change (`admission.edits`)."""
        if old is not None:
            return
        annotations = plan.job.view.metadata.annotations
        secret = annotations.get(names.ANNOTATION_OUTPUT_SECRET)
        try:
            uri = output_of(annotations)
        except OutputUriError as error:
            yield Finding(_AT, str(error))
            return
        if uri is None:
            if secret is not None:
                yield f"{_SECRET_AT} has no effect: there is no {names.ANNOTATION_OUTPUT} that says where output goes"
            return
        if secret is not None and not is_object_name(secret):
            yield Finding(_SECRET_AT, "must be the name of a Secret in the TrainJob's own namespace")
        if not self._can_ask and plan.job.view.spec.managed_by != names.MANAGED_BY_MULTIKUEUE:
            yield Finding(
                _AT,
                "needs the operator's status server, by which a sender learns that training has ended: an admin turns "
                "the feature gate TrainJobStatus on, or leave the annotation out",
                "Forbidden",
            )
        yield from _judge_runtime(plan)

    def _sender(self, plan: Plan, pods: PodSet, uri: OutputUri, mount: Tree, place: Tree) -> Tree:
        secret = plan.job.view.metadata.annotations.get(names.ANNOTATION_OUTPUT_SECRET)
        variables = [
            {"name": names.ENV_OUTPUT_URI, "value": uri.text},
            place,
            {"name": names.ENV_OUTPUT_PROVENANCE, "value": _plain(json.dumps(provenance(plan), sort_keys=True))},
        ]
        return {
            "name": names.OUTPUT,
            "image": self._image,
            "command": COMMAND,
            "env": variables,
            **({"envFrom": [{"secretRef": {"name": secret}}]} if secret else {}),
            "volumeMounts": [mount],
            "securityContext": _security(pods, plan.trainer_container),
        }


def provenance(plan: Plan) -> Tree:
    """Return what produced an output, as its manifest tells everybody who reads it: no credentials."""
    job, ref = plan.job.view, plan.job.view.spec.runtime_ref
    told: Tree = {
        "namespace": plan.namespace,
        "trainJob": plan.name,
        "uid": job.metadata.uid,
        "runtime": {"kind": ref.kind, "name": ref.name},
    }
    args = plan.trainer.args if plan.trainer else []
    if len(args) > 1 and args[0] == names.CODE_NODE and args[1].startswith(names.CODE_DIGEST):
        told["code"] = args[1][:_LONGEST]
    if plan.trainer_container is not None:
        told["image"] = plan.trainer_container.image[:_LONGEST]
    for part in ("dataset", "model"):
        source = getattr(job.spec.initializer, part, None)
        if source is not None and source.storage_uri:
            told[part] = _source(source)
    return told


def _source(source: InitializerSource) -> Tree:
    told = {"uri": _CREDENTIALS.sub("", source.storage_uri or "")[:_LONGEST]}
    revision = next((entry.get("value") for entry in source.env if entry.get("name") == _REVISION), None)
    return told if not revision else {**told, "revision": str(revision)[:_LONGEST]}


def _wanted(plan: Plan) -> OutputUri | None:
    try:
        return output_of(plan.job.view.metadata.annotations)
    except OutputUriError as error:
        raise RefusalError(_AT, str(error)) from error


def _mount_of(container: Container) -> Tree | None:
    """Return the mount on which the training's output lies; None if it lies on none."""
    above = [
        mount
        for mount in container.tree.get("volumeMounts") or ()
        if f"{names.PATH_OUTPUT}/".startswith(str(mount.get("mountPath", "")).rstrip("/") + "/")
    ]
    return max(above, key=lambda mount: len(mount["mountPath"]), default=None)


def _security(pods: PodSet, container: Container | None) -> Tree:
    """Return the sender's securityContext: no more rights than it takes to read what the training wrote.

    Where nobody says as whom the training runs, that is up to its image, and only root may read whatever it writes.
    """
    own: dict[str, Any] = trees.get(container.tree if container else {}, "securityContext") or {}
    pod: dict[str, Any] = pods.pod_spec.get("securityContext") or {}
    user = {key: own[key] for key in _USER if own.get(key) is not None}
    least: Tree = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if any(key in user or pod.get(key) is not None for key in ("runAsUser", "runAsNonRoot")):
        return {**least, **user}
    least["capabilities"]["add"] = ["DAC_OVERRIDE"]
    return {**least, **user, "runAsUser": 0}


def _judge_runtime(plan: Plan) -> Iterator[Finding | str]:
    pods, trains = plan.trainer_set, plan.trainer_container
    if pods is None or trains is None:
        yield Finding(
            _AT,
            f"no job of the runtime trains in a container {names.CONTAINER_NODE}: choose another runtime",
            "Forbidden",
        )
        return
    if any(one.name == names.OUTPUT for one in (*pods.containers, *pods.init_containers)):
        yield Finding(_AT, f"the runtime has a container {names.OUTPUT} of its own: rename that", "Forbidden")
    if trees.get(pods.pod_spec, "volumes", ("name", names.OUTPUT)) is not None and _mount_of(trains) is None:
        yield Finding(_AT, f"the runtime has a volume {names.OUTPUT} of its own: rename that", "Forbidden")
    mount = _mount_of(trains) or {}
    if mount.get("subPathExpr"):
        yield Finding(
            _AT,
            f"the runtime mounts {mount['mountPath']} by a subPathExpr, which means another folder to the sender: "
            "write a subPath there",
            "Forbidden",
        )
    if mount.get("readOnly"):
        yield Finding(
            _AT, f"the runtime mounts {mount['mountPath']} to read only: training cannot write there", "Forbidden"
        )
    said = {entry.get("name"): entry.get("value") for entry in plan.trainer.env} if plan.trainer else {}
    if said.get(names.ENV_OUTPUT_DIR, names.PATH_OUTPUT) != names.PATH_OUTPUT:
        yield (
            f"spec.trainer.env sets {names.ENV_OUTPUT_DIR} to another folder than {names.PATH_OUTPUT}: what is written "
            "elsewhere is not sent"
        )


def _plain(text: str) -> str:
    """Return a text as a variable's value that the kubelet does not look for other variables in."""
    return text.replace("$", "$$")
