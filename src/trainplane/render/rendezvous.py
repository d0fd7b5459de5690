"""Where the nodes of a training meet: at the first of them, on one port.

Most frameworks want to know the same three things, under names of their own: where the first node is, how many nodes
there are, and which of them this one is.

    meeting = rendezvous_of(plan)
    meeting.address                     job-node-0-0.job:29500
    meeting.nodes                       4
    rank("JAX_PROCESS_ID")              a variable that is different in each pod

The address is that of the job that trains, whatever its name, in the subdomain that the runtime gives its pods. The
port is 29500, unless the runtime's annotation `trainer.kubeflow.org/port` says another: pods that share their node's
network need it. It is said on the runtime, not on the TrainJob, because a JobSet that stands cannot take another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.render.plugin import RefusalError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.api.tree import Tree
    from trainplane.render.plan import Container, Plan, PodSet

_PORTS: Final = range(1, 65536)


@dataclass(frozen=True, slots=True)
class Rendezvous:
    """The nodes that train, and where they meet."""

    pods: PodSet
    container: Container
    """The one that trains."""
    port: int

    @property
    def host(self) -> str:
        """The first node's address; it is known before there is any pod."""
        return self.pods.endpoint(0)

    @property
    def address(self) -> str:
        """The first node's address and the port."""
        return f"{self.host}:{self.port}"

    @property
    def nodes(self) -> int:
        """How many nodes there are; read it when counts are settled."""
        return self.pods.count


def rendezvous_of(plan: Plan, *, port: int = names.TRAINER_PORT) -> Rendezvous | None:
    """Return where the nodes meet; None if the runtime has no job or no container that trains.

    `port` is the framework's, taken where the runtime's annotation says nothing.

    Raises:
        RefusalError: the annotation is no port.
    """
    pods, container = plan.trainer_set, plan.trainer_container
    if pods is None or container is None:
        return None
    return Rendezvous(pods, container, port_of(plan, default=port))


def port_of(plan: Plan, *, default: int = names.TRAINER_PORT) -> int:
    """Return the port that the runtime's annotation says, else the framework's.

    Raises:
        RefusalError: the annotation is no port.
    """
    said = port_said(plan.runtime.view.metadata.annotations)
    return default if said is None else said


def port_said(annotations: Mapping[str, str]) -> int | None:
    """Return the port that a runtime's annotations say, or None.

    Raises:
        RefusalError: it is no port.
    """
    text = annotations.get(names.ANNOTATION_PORT)
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and int(text) in _PORTS:
        return int(text)
    raise RefusalError(
        "spec.runtimeRef",
        f"the runtime's annotation {names.ANNOTATION_PORT} is {text!r}: write a port, a number from 1 to 65535",
    )


def rank(name: str) -> Tree:
    """Return a variable that holds a pod's place among the nodes, from 0."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": names.FIELD_PATH_COMPLETION_INDEX}}}


def open_port(container: Container, port: int) -> None:
    """Let a container say that it listens on a port; one that it names already keeps its name, others stay."""
    if all(entry.get("containerPort") != port for entry in container.tree.get("ports") or ()):
        container.set_ports({"containerPort": port})


def append_env(container: Container, *variables: Tree) -> None:
    """Set variables of which later ones refer to earlier ones as `$(NAME)`, which Kubernetes resolves in order only.

    So they stand at the end, in this order; a variable of the runtime's of the same name gives way.
    """
    ours = {entry["name"] for entry in variables}
    if container.env:
        container.tree["env"] = [entry for entry in container.env if entry.get("name") not in ours]
    container.set_env(*variables)
