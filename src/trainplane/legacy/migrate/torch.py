"""What a PyTorchJob says beside its replicas: processes per node, and nodes that come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trainplane.api import names
from trainplane.api import tree as trees
from trainplane.api.legacy import names as old
from trainplane.api.runtime import PROCESS_WORDS
from trainplane.legacy.migrate.outcome import RefusedError
from trainplane.render.findings import Finding

if TYPE_CHECKING:
    from trainplane.api.tree import Tree
    from trainplane.legacy.migrate.draft import Draft
    from trainplane.legacy.migrate.roles import Role

_AT: Final = "spec.elasticPolicy"
_COUNTS: Final = {"minReplicas": "minNodes", "maxReplicas": "maxNodes", "maxRestarts": "maxRestarts"}
_RENDEZVOUS: Final = {"rdzvBackend": names.TORCH_RDZV_BACKEND, "rdzvId": names.TORCH_RDZV_ID}


def processes_of(spec: Tree) -> str:
    """Return how many processes each node runs: a number, a word by which torchrun counts, or nothing said.

    Raises:
        RefusedError: it is neither.
    """
    said = spec.get("nprocPerNode")
    if said is None:
        older = trees.number(spec, "elasticPolicy", "nProcPerNode")
        return "" if older is None else str(older)
    if isinstance(said, str) and (said in PROCESS_WORDS or (said.isascii() and said.isdecimal() and int(said[:9]) > 0)):
        return said[:9]
    words = ", ".join(PROCESS_WORDS)
    raise RefusedError([Finding("spec.nprocPerNode", f"must be {words} or a number of processes, as a text")])


def take_processes(spec: Tree, said: str, draft: Draft) -> None:
    """Say how many processes each node runs."""
    place = "spec.nprocPerNode" if spec.get("nprocPerNode") is not None else f"{_AT}.nProcPerNode"
    if not said or not draft.trainer:
        if said:
            draft.put(place, "as a variable of the runtime's containers")
        return
    if said.isdecimal():
        draft.trainer["numProcPerNode"] = int(said)
        draft.put(place, "as trainer.numProcPerNode")
    elif said == old.NPROC_AUTO:
        text = (
            "left to the TrainJob: one for each GPU, or else one for each processor of the container, not the machine"
        )
        draft.note(place, "changed", text)
    else:
        draft.policy["torch"]["numProcPerNode"] = said
        draft.needs_runtime(place)


def take_elastic(policy: Tree | None, roles: list[Role], draft: Draft) -> None:
    """Let nodes come and go as the job's policy says.

    Raises:
        RefusedError: the nodes are not made alike.
    """
    if policy is None:
        return
    if len(draft.order) != 1:
        raise RefusedError([Finding(_AT, "needs nodes that are made alike: give master and workers one template")])
    nodes = draft.trainer["numNodes"]
    elastic = {ours: policy[theirs] for theirs, ours in _COUNTS.items() if policy.get(theirs) is not None}
    draft.policy = {"torch": {"elasticPolicy": {"minNodes": nodes, "maxNodes": nodes} | elastic}}
    draft.own = True
    for field in sorted(_COUNTS.keys() & policy.keys()):
        draft.put(f"{_AT}.{field}", f"as mlPolicy.torch.elasticPolicy.{_COUNTS[field]}")
    if policy.get("maxReplicas") not in {None, nodes}:
        text = f"torchrun is told of {nodes} nodes, which is trainer.numNodes, and maxNodes is what that may be"
        draft.note(f"{_AT}.maxReplicas", "changed", text, alters={"nodes"})
    if policy.get("metrics"):
        text = "nothing scales a TrainJob by metrics: create it with another numNodes"
        draft.note(f"{_AT}.metrics", "left out", text)
    draft.trainer["env"] = [*draft.trainer.get("env", ()), *_rendezvous(policy, roles, draft)]


def _rendezvous(policy: Tree, roles: list[Role], draft: Draft) -> list[Tree]:
    values = {name: str(policy[field]) for field, name in _RENDEZVOUS.items() if policy.get(field) is not None}
    host, port = policy.get("rdzvHost"), policy.get("rdzvPort")
    if host is not None:
        values[names.TORCH_RDZV_ENDPOINT] = f"{host}:{port or draft.kind.port}"
    elif port is not None:
        draft.annotations[names.ANNOTATION_PORT] = str(port)
    settings = trees.entries(policy, "rdzvConf")
    if settings:
        values["PET_RDZV_CONF"] = ",".join(f"{one.get('key', '')}={one.get('value', '')}" for one in settings)
    if policy.get("standalone"):
        values["PET_STANDALONE"] = ""
    for field in sorted(policy.keys() - _COUNTS.keys() - {"metrics", "nProcPerNode"}):
        draft.put(f"{_AT}.{field}", "as a variable of the trainer's, or its port")
    said = {entry.get("name") for entry in trees.entries(roles[0].container, "env")}
    for name in said & values.keys():
        draft.trainer["env"] = [entry for entry in draft.trainer["env"] if entry.get("name") != name]
    return [{"name": name, "value": value} for name, value in values.items()]
