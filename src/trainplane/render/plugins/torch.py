"""Torch: torchrun on every node, told by PET_ variables how many there are, which it is, and where the first one is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api.jobset import Container as Window
from trainplane.api.runtime import PROCESS_WORDS
from trainplane.render import resources
from trainplane.render.findings import Finding
from trainplane.render.plugin import Plugin, RefusalError
from trainplane.render.plugins import torchtune
from trainplane.render.provenance import Origin
from trainplane.render.rendezvous import open_port, port_of, port_said, rank
from trainplane.render.reserved import judge_reserved_at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainplane.api.document import Document
    from trainplane.api.runtime import ElasticPolicy, TorchPolicy
    from trainplane.api.trainjob import TrainJob
    from trainplane.api.tree import Tree
    from trainplane.render.plan import Container, Plan

_AUTO: Final = "auto"
_MOST_NODES: Final = Origin("runtime", path="spec.mlPolicy.torch.elasticPolicy.maxNodes")
_RENDEZVOUS: Final = "--rdzv_endpoint="
_LOCAL_RENDEZVOUS: Final = f"{_RENDEZVOUS}localhost:"


class Torch(Plugin):
    """Serves runtimes with `mlPolicy.torch`."""

    name = "Torch"

    def enforce(self, plan: Plan) -> None:
        """Set the number of nodes, torch's variables and port, and torchtune's command where it is asked for."""
        policy = _policy(plan)
        if policy is None:
            return
        pods, trainer = plan.trainer_set, plan.trainer
        if pods and policy.elastic_policy:
            pods.set_pods(policy.elastic_policy.most_nodes, origin=_MOST_NODES)
        plan.count_nodes()
        nodes = pods.count if pods else 1
        processes = _processes(plan, policy)
        address, port = _first_node(plan), port_of(plan)
        endpoint = f"{address}:{port}"
        group, master = _group(nodes, processes), _master(address, port)
        if policy.elastic_policy:
            group, master = _elastic(plan, policy.elastic_policy, nodes, processes, endpoint), ()
        container = plan.trainer_container
        if container:
            container.set_env(*group)
            if trainer and trainer.command == torchtune.ENTRYPOINT:
                tuning = _tuning(plan, nodes, processes)
                container.set("command", torchtune.command(tuning, _runtime_command(plan), endpoint))
            else:
                container.set_env(*master)
                _rendezvous_at(container, address, port_said(plan.runtime.view.metadata.annotations), nodes)
            open_port(container, port)
        for job, name, further in _further(plan, policy):
            if further is None:
                raise RefusalError("spec.runtimeRef", _no_target(job, name))
            further.set_env(*group, *master)

    def validate(self, plan: Plan, old: Document[TrainJob] | None) -> Iterator[Finding]:
        """Check the targets of envInjection, variables that are torch's own, and what torchtune can do."""
        del old
        policy = _policy(plan)
        if policy is None:
            return
        for job, name, further in _further(plan, policy):
            if further is None:
                yield Finding("spec.runtimeRef", _no_target(job, name))
        trainer = plan.trainer
        if trainer is None:
            return
        if policy.elastic_policy and trainer.num_nodes is not None:
            yield from _judge_bounds(policy.elastic_policy, trainer.num_nodes)
        yield from judge_reserved_at_once(plan, names.TORCH_RESERVED, "torch")
        if trainer.command == torchtune.ENTRYPOINT:
            nodes = plan.trainer_set.count if plan.trainer_set else 1
            if trainer.num_nodes is not None:
                nodes = trainer.num_nodes
            yield from torchtune.findings(_tuning(plan, nodes, _said_processes(plan, policy)))


def _policy(plan: Plan) -> TorchPolicy | None:
    return plan.policy.torch if plan.policy else None


def _node(plan: Plan) -> Window:
    """Return the container whose resources count, to read from; an empty one if the runtime has none."""
    pods = plan.trainer_set or plan.pod_set(names.JOB_NODE)
    return (pods.container(names.CONTAINER_NODE) if pods else None) or Window({})


def _first_node(plan: Plan) -> str:
    pods = plan.trainer_set or plan.pod_set(names.JOB_NODE)
    return pods.endpoint(0) if pods else f"{names.pod_hostname(plan.name, names.JOB_NODE, 0, 0)}.{plan.subdomain}"


def _said_processes(plan: Plan, policy: TorchPolicy) -> int | str:
    """Return processes per node as the TrainJob says, else the runtime (v2.0 and v2.1); else `auto`."""
    said = plan.trainer.num_proc_per_node if plan.trainer else None
    if said is None:
        said = policy.num_proc_per_node
    if said is None:
        return _AUTO
    if isinstance(said, int) or said in PROCESS_WORDS:
        return said
    try:
        return int(said)
    except ValueError:
        words = ", ".join(PROCESS_WORDS)
        raise RefusalError("spec.trainer.numProcPerNode", f"{said!r} is no number and none of {words}") from None


def _processes(plan: Plan, policy: TorchPolicy) -> int | str:
    """Return processes per node, or the word by which torch counts devices itself.

    `cpu`, and `auto` without a device, mean one process for each processor of the container: torch would count those of
    the machine. It would also count them where there are TPUs, Neuron cores or Gaudis, which it does not know. How many
    devices a container claims (DRA) is known only where it runs: torch counts them.
    """
    said = _said_processes(plan, policy)
    node = _node(plan)
    if said == _AUTO and not resources.gpus(node):
        counted = resources.accelerators(node)
        return counted or (_AUTO if resources.claims(node) else max(1, resources.cpus(node)))
    return max(1, resources.cpus(node)) if said == "cpu" else said


def _group(nodes: int, processes: int | str) -> tuple[Tree, ...]:
    return (
        {"name": names.TORCH_NNODES, "value": str(nodes)},
        {"name": names.TORCH_NPROC_PER_NODE, "value": str(processes)},
        rank(names.TORCH_NODE_RANK),
    )


def _master(address: str, port: int) -> tuple[Tree, ...]:
    return (
        {"name": names.TORCH_MASTER_ADDR, "value": address},
        {"name": names.TORCH_MASTER_PORT, "value": str(port)},
    )


def _elastic(plan: Plan, elastic: ElasticPolicy, nodes: int, processes: int | str, endpoint: str) -> tuple[Tree, ...]:
    """Return the variables with which nodes come and go: torchrun lets those who are there meet anew.

    Ranks are given at each meeting, so no node has one of its own. The first node keeps the register of who is there.
    """
    values = {
        names.TORCH_NNODES: f"{min(elastic.least_nodes, nodes)}:{nodes}",
        names.TORCH_NPROC_PER_NODE: str(processes),
        names.TORCH_RDZV_BACKEND: "c10d",
        names.TORCH_RDZV_ENDPOINT: endpoint,
        names.TORCH_RDZV_ID: plan.name,
    }
    if elastic.max_restarts is not None:
        values[names.TORCH_MAX_RESTARTS] = str(elastic.max_restarts)
    return tuple(plan.env_not_overridden({"name": name, "value": value} for name, value in values.items()))


def _judge_bounds(elastic: ElasticPolicy, nodes: int) -> Iterator[Finding]:
    least, most = elastic.least_nodes, elastic.most_nodes
    if not least <= nodes <= most:
        yield Finding(
            "spec.trainer.numNodes",
            f"{nodes} is not within the runtime's mlPolicy.torch.elasticPolicy: write {least} to {most}",
        )


def _tuning(plan: Plan, nodes: int, processes: int | str) -> torchtune.Tuning:
    args = plan.trainer.args if plan.trainer else ()
    return torchtune.Tuning(plan.job.view.spec.runtime_ref.name, nodes, processes, resources.gpus(_node(plan)), args)


def _runtime_command(plan: Plan) -> list[str]:
    """Return the command of the training container before the TrainJob replaced it."""
    pods = plan.trainer_set
    entries = plan.runtime_pod_spec(pods).get("containers") or () if pods else ()
    return next((entry.get("command") or [] for entry in entries if entry.get("name") == names.CONTAINER_NODE), [])


def _rendezvous_at(container: Container, address: str, port: int | None, nodes: int) -> None:
    """Let nodes that a runtime's own `tune run` lets meet at localhost meet at the first of them.

    The port is the command's own, unless the runtime's annotation says another.
    """
    command = container.command
    if nodes == 1 or command[:2] != torchtune.ENTRYPOINT:
        return
    places = [word.removeprefix(_LOCAL_RENDEZVOUS) for word in command if word.startswith(_LOCAL_RENDEZVOUS)]
    if places:
        meeting = f"{_RENDEZVOUS}{address}:{port or places[0]}"
        container.set("command", [meeting if word.startswith(_LOCAL_RENDEZVOUS) else word for word in command])


def _further(plan: Plan, policy: TorchPolicy) -> Iterator[tuple[str, str, Container | None]]:
    """Yield the containers beside the training container that get torch's variables, or None where one is missing."""
    for target in policy.env_injection.targets if policy.env_injection else ():
        pods = plan.pod_set(target.job_name)
        for name in target.container_names:
            yield target.job_name, name, pods.any_container(name) if pods else None


def _no_target(job: str, container: str) -> str:
    return f"mlPolicy.torch.envInjection names container {container} of job {job}, which the runtime does not have"
