"""The options of `docker create` and `podman create` that make a container of a pod. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.quantity import Quantity
from trainplane.client.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trainplane.api.tree import Tree
    from trainplane.client.backends.local.runner import Launch

LABEL_JOB: Final = "trainer.kubeflow.org/trainjob-name"
LABEL_STEP: Final = "trainer.kubeflow.org/step"
LABEL_UID: Final = "trainplane.dev/trainjob-uid"
_ENGINES_OWN: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|TERM|TMPDIR|(?:LC|LD|XDG)_\w+|(?i:https?|ftp|all|no)_proxy"
    r"|GODEBUG|GOMAXPROCS|GOGC|GOMEMLIMIT|GOTRACEBACK|SSL_CERT_FILE|SSL_CERT_DIR|SSH_AUTH_SOCK|NOTIFY_SOCKET"
    r"|_?(?:DOCKER|BUILDKIT|CONTAINERS?|PODMAN|BUILDAH|STORAGE|REGISTR(?:Y|IES)|CNI|NETAVARK|DBUS|LISTEN|SYSTEMD)_\w+"
)
"""Variables that docker, podman and what they call read for themselves."""


def create_options(
    launch: Launch, *, uid: str, gpus: Sequence[int], network: Mapping[str, str], hosts: Mapping[str, str], podman: bool
) -> Iterator[str]:
    """Yield the options that make the container of a launch.

    Args:
        launch: The container.
        uid: Of the TrainJob.
        gpus: The numbers of those that it may use.
        network: `name` and `ip` for the pod's first container, `container` for others: the first one's name.
        hosts: Addresses of all pods by name.
        podman: Whether the engine is podman.
    """
    labels = launch.pod["metadata"]["labels"]
    yield from ("--name", launch.identity)
    yield from ("--label", f"{LABEL_JOB}={labels[names.LABEL_JOBSET_NAME]}")
    yield from ("--label", f"{LABEL_STEP}={launch.place.replicated_job}-{launch.place.completion_index}")
    yield from ("--label", f"{LABEL_UID}={uid}")
    if "container" in network:
        yield from ("--network", f"container:{network['container']}")
    else:
        yield from ("--network", network["name"], "--ip", network["ip"], "--hostname", launch.pod["spec"]["hostname"])
        for name, address in hosts.items():
            yield from ("--add-host", f"{name}:{address}")
    yield from _limits(launch.container, gpus, podman=podman)
    yield from _user(launch.pod, launch.container)
    for mount in launch.mounts:
        ending = ",readonly" if mount.read_only else ""
        yield from ("--mount", f"type=bind,source={mount.source},target={mount.path}{ending}")
    if launch.container.get("workingDir"):
        yield from ("--workdir", launch.container["workingDir"])
    if podman:
        yield from ("--security-opt", "label=disable")  # folders of the job's are not labelled for containers


@dataclass(frozen=True)
class Variables:
    """Variables of a container on their way to the engine: never in its command line, which all users can read.

    An option names a variable, and the engine takes the value from its own environment, whatever is in it. A variable
    that the engine reads itself, such as PATH, would change what the engine does: it goes into a file, a line each.
    """

    options: list[str]
    environment: dict[str, str]
    """What the engine's process must have in addition, or in place of its own."""
    file: bytes
    """What `--env-file` must have; empty where none is needed."""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Variables:
        """Divide variables into those two ways.

        Raises:
            InvalidError: one has a name of the engine's, and lines that a file of variables cannot have.
        """
        lines: list[str] = []
        handed: dict[str, str] = {}
        for name, value in variables.items():
            if not _ENGINES_OWN.fullmatch(name):
                handed[name] = value
            elif "\n" in value or "\r" in value:
                raise InvalidError(
                    f"the variable {name} has several lines, and container engines read a variable of that name "
                    f"themselves: give it another name"
                )
            else:
                lines.append(f"{name}={value}\n")
        return cls([word for name in handed for word in ("--env", name)], handed, "".join(lines).encode())


def command_words(launch: Launch, image: str) -> list[str]:
    """Return the image and what it runs: a command takes the place of the image's entrypoint."""
    if not launch.command:
        return [image, *launch.args]
    return ["--entrypoint", launch.command[0], image, *launch.command[1:], *launch.args]


def listens(tables: str, port: int) -> bool:
    """Return whether somebody listens on a port, by the kernel's tables /proc/net/tcp and tcp6."""
    wanted = f":{port:04X}"
    for line in tables.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1].endswith(wanted) and fields[3] == "0A":
            return True
    return False


def _limits(container: Tree, gpus: Sequence[int], *, podman: bool) -> Iterator[str]:
    limits: Tree = trees.get(container, "resources", "limits") or {}
    if limits.get("memory") is not None:
        amount = str(Quantity.of(limits["memory"]).value())
        yield from ("--memory", amount, "--memory-swap", amount)
    if limits.get("cpu") is not None:
        yield from ("--cpus", f"{Quantity.of(limits['cpu']).milli_value() / 1000:g}")
    if podman:
        for device in gpus:
            yield from ("--device", f"nvidia.com/gpu={device}")
    elif gpus:
        yield from ("--gpus", f'"device={",".join(map(str, gpus))}"')


def _user(pod: Tree, container: Tree) -> Iterator[str]:
    def said(name: str) -> Any:
        own = trees.get(container, "securityContext", name)
        return trees.get(pod, "spec", "securityContext", name) if own is None else own

    user, group, shared = said("runAsUser"), said("runAsGroup"), trees.get(pod, "spec", "securityContext", "fsGroup")
    if user is not None:
        yield from ("--user", f"{user}:{group}" if group is not None else str(user))
    if shared is not None:
        yield from ("--group-add", str(shared))
    if said("privileged"):
        yield "--privileged"
    for capability in trees.get(container, "securityContext", "capabilities", "add") or ():
        yield from ("--cap-add", str(capability))
    for capability in trees.get(container, "securityContext", "capabilities", "drop") or ():
        yield from ("--cap-drop", str(capability))
    if said("readOnlyRootFilesystem"):
        yield "--read-only"
