"""Code that our SDK ships in a TrainJob's arguments: once for the job, not once for each of its pods.

The SDK packs files into `spec.trainer.args`, so that they go wherever the TrainJob goes, through MultiKueue too, in one
request and without rights to anything but TrainJobs. In each pod they would be stored again with every write of its
status: 800 KB times a thousand nodes. So what is large goes into a ConfigMap of the job, which its pods mount, and the
argument says where: `@/trainplane/code/payload`. An operator that does not know this leaves the arguments as they are,
and the node's first program (`client/code/boot.py`) takes both.

It works before the frameworks, some of which make one line of command and arguments.
"""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render.plugin import Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Plan

INLINE: Final = 32 * 1024
"""Characters of code that stay in the arguments: most functions have a quarter of that, and need no second object."""
MOST: Final = 1_000_000
"""Bytes that a ConfigMap takes, with some room for its names: the API server stores 1 MiB."""
_VOLUME: Final = "trainplane-code"
_FOLDER: Final = "/trainplane/code"
_FILE: Final = "payload"


class ShippedCode(Plugin):
    """Puts large code into a ConfigMap."""

    name = "ShippedCode"

    def enforce(self, plan: Plan) -> None:
        """Let the pods that train mount the code, and say so in their arguments."""
        if _packed(plan) is None:
            return
        args = plan.trainer.args if plan.trainer else []
        volume = {"name": _VOLUME, "configMap": {"name": names.code_name(plan.name)}}
        mount = {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}
        for pods in plan.pod_sets:
            container = pods.container(names.CONTAINER_NODE)
            if container is not None and pods.ancestor == names.ANCESTOR_TRAINER and container.args == args:
                pods.set_volumes(volume)
                container.set_mounts(mount)
                container.set("args", [*args[:2], f"@{_FOLDER}/{_FILE}"])

    def build(self, plan: Plan) -> Iterator[Tree]:
        """Return the ConfigMap; a TrainJob's code never changes, so neither does this."""
        packed = _packed(plan)
        if packed is not None:
            yield {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": names.code_name(plan.name)},
                "immutable": True,
                "binaryData": {_FILE: packed},
            }


def _packed(plan: Plan) -> str | None:
    """Return the code that a TrainJob ships, in base64, if it is large; what is no such code stays where it is."""
    args = plan.trainer.args if plan.trainer else []
    if len(args) < 3 or args[0] != names.CODE_NODE or not args[1].startswith(names.CODE_DIGEST):
        return None
    if sum(map(len, args[2:])) <= INLINE:
        return None
    text = "".join(args[2:])
    try:
        size = len(binascii.a2b_base64(text, strict_mode=True))
    except (binascii.Error, ValueError):
        return None
    return text if size <= MOST else None
