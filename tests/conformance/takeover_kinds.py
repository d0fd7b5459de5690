"""Jobs of every kind for a takeover: each framework, networks, initializers, PodGroups, and what patches replace.

Each is tried both ways. Ours goes on with every JobSet of the reference's. The reference applies its whole JobSet
anew, so one that is suspended, or is to be, goes on under it only if ours is the same in all that JobSet holds fixed;
`frozen` says in which fields of pods it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.conformance.documents import (
    container,
    env,
    initializer_job,
    patch,
    patch_job,
    replicated_job,
    runtime,
    train_job,
)
from tests.conformance.gang_cases import gang
from tests.conformance.takeover import FIELD, HELD, Member

if TYPE_CHECKING:
    from tests.conformance.cases import Tree

_DONE: Final = ("Complete", "AllJobsCompleted")
_RUNS: Final = ("start", "succeed")
_POD: Final = {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "nodeSelector": {FIELD: HELD}}
_JOB: Final = {"backoffLimit": 0}
_MANAGER: Final = "x.example.com/manager"
_DATA: Final = {"name": "data", "emptyDir": {}}
_CLAIMED: Final = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


@dataclass(frozen=True)
class Kind:
    """A kind of job: what it is in a table, its runtime and its TrainJob, and what is frozen of it on the way back."""

    name: str
    what: str
    frozen: tuple[str, ...] = ()
    policy: Tree | None = field(default_factory=lambda: {"numNodes": 2}, hash=False)
    jobs: tuple[Tree, ...] = field(default=(), hash=False)
    spec: Tree = field(default_factory=lambda: {"trainer": {}}, hash=False)
    words: Tree = field(default_factory=dict, hash=False)
    group: str = ""
    steps: tuple[str, ...] = _RUNS
    """How it comes to its end once it runs."""
    is_possible: bool = True
    """Whether what the reference makes of it can have pods; if not, only the way back is tried."""

    @property
    def runtime(self) -> Tree:
        """Its runtime; JobSet's own controller is at work on it."""
        found = runtime(*(self.jobs or (_node(),)), name=self.name, policy=self.policy, **self.words)
        del found["spec"]["template"]["spec"]["managedBy"]
        return gang(found, self.group) if self.group else found

    @property
    def framework(self) -> bool:
        """Whether it is the plainest one of a framework."""
        return self.name in (self.policy or {})

    @property
    def is_always_tried(self) -> bool:
        """Whether every run tries it: the plainest ones, and what the reference does change on the way back."""
        return self.framework or self.name in ("any", "ttl")

    def suspended(self) -> Member:
        """Return a job that is taken over while it is suspended, and then runs."""
        spec = {**self.spec, "suspend": True}
        late = ("resume", *self.steps)
        return Member(f"{self.name}-held", *_DONE, late=late, spec=spec, runtime=self.name, returns=not self.frozen)

    def running(self) -> Member:
        """Return a job that is taken over while it runs, and goes on."""
        first, *late = self.steps
        return Member(self.name, *_DONE, early=(first,), late=tuple(late), spec=self.spec, runtime=self.name)


def _node(name: str = "node", *, ancestor: str | None = "trainer", **fields: Any) -> Tree:
    volumes = {"volumes": fields.pop("volumes")} if "volumes" in fields else {}
    side = container("side", **fields.pop("side")) if "side" in fields else None
    containers = [container(**fields), *([side] if side else [])]
    return replicated_job(name, ancestor=ancestor, job=_JOB, containers=containers, **_POD, **volumes)


def _steps() -> tuple[Tree, ...]:
    """Return the job of an initializer, and one that waits for it."""
    first = initializer_job("dataset", "dataset")
    pod = first["template"]["spec"]["template"]["spec"]
    pod.update({**_POD, "volumes": [{"name": "initializer", "emptyDir": {}}]})
    return first, {**_node(), "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}]}


def _from(uri: str) -> Tree:
    return {"trainer": {}, "initializer": {"dataset": {"storageUri": uri}}}


def _of_two(**policy: Any) -> Tree:
    return {**policy, "numNodes": 2}


def _patched(**pod: Any) -> Tree:
    return {"trainer": {}, "runtimePatches": [patch(_MANAGER, patch_job(**pod))]}


OF_PROGRESS: Final = ("env", "volumeMounts", "volumes")
"""What is frozen of any job that ours made with progress on."""
_GPUS: Final = {"limits": {"nvidia.com/gpu": 2}}
_BOTH_SIDES: Final = {"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}
_WAITING: Final = ("start", "succeed", *_RUNS)
_MPI: Final = (_node(ancestor=None), _node("launcher"))

KINDS: Final = (
    Kind("any", "any not below"),
    Kind("ttl", "any with a TTL, which a suspended JobSet gets at once", words={"ttlSecondsAfterFinished": 600}),
    Kind("network", "any with a subdomain", words={"network": {"subdomain": "sub"}}),
    Kind("initialized", "any with an initializer", jobs=_steps(), spec=_from("hf://a/b"), steps=_WAITING),
    Kind(
        "claim",
        "any with an initializer of a claim (`claim-mounted`)",
        ("volumeMounts", "volumes"),
        jobs=_steps(),
        spec=_from("pvc://data/a"),
        steps=_WAITING,
    ),
    Kind("coscheduling", "any in a PodGroup of the scheduler plugins", group="coscheduling"),
    Kind("volcano", "any in a PodGroup of Volcano", group="volcano"),
    Kind(
        "volume",
        "any where a patch gives a volume another source (`volume-replaced`)",
        ("volumes",),
        jobs=(_node(volumes=[_DATA]),),
        spec=_patched(volumes=[_CLAIMED]),
        is_possible=False,
    ),
    Kind(
        "variable",
        "any where a patch gives a variable another source (`variable-replaced`)",
        ("env",),
        jobs=(_node(side={"env": env(A="a")}),),
        spec=_patched(
            containers=[
                {"name": "side", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}
            ]
        ),
        is_possible=False,
    ),
    Kind(
        "devices",
        "any with a runtime's devices that the TrainJob says on one side (`equal-sides`)",
        ("resources",),
        jobs=(_node(resources=_BOTH_SIDES),),
        spec={"trainer": {"resourcesPerNode": _GPUS}},
        is_possible=False,
    ),
    Kind(
        "bare",
        "any without `mlPolicy`, with `resourcesPerNode` (`resources-without-policy`)",
        ("resources",),
        policy=None,
        spec={"trainer": {"resourcesPerNode": {"requests": {"cpu": "1"}}}},
    ),
    Kind("torch", "Torch (`master`)", ("env",), _of_two(torch={})),
    Kind(
        "torch-alone",
        "Torch without `spec.trainer` (`torch-without-trainer`)",
        ("env", "ports"),
        _of_two(torch={}),
        spec={},
    ),
    Kind(
        "torchrun",
        "Torch with `args` and no command (`torchrun`)",
        ("command", "env"),
        _of_two(torch={}),
        spec={"trainer": {"args": ["train.py"]}},
    ),
    Kind(
        "torch-port",
        "Torch with an unnamed port of its runtime (`ports-kept`)",
        ("env", "ports"),
        _of_two(torch={}),
        jobs=(_node(ports=[{"containerPort": 8080}]),),
    ),
    Kind(
        "torch-network",
        "Torch with a subdomain (`subdomain`)",
        ("env",),
        _of_two(torch={}),
        words={"network": {"subdomain": "sub"}},
    ),
    Kind("jax", "JAX", (), _of_two(jax={})),
    Kind(
        "jax-alone",
        "JAX without `spec.trainer` (`variables-without-trainer`)",
        ("env", "ports"),
        _of_two(jax={}),
        spec={},
    ),
    Kind(
        "jax-network",
        "JAX with a subdomain (`first-node`)",
        ("env",),
        _of_two(jax={}),
        words={"network": {"subdomain": "sub"}},
    ),
    Kind("xgboost", "XGBoost", (), _of_two(xgboost={})),
    Kind(
        "xgboost-alone",
        "XGBoost without `spec.trainer` (`variables-without-trainer`)",
        ("env", "ports"),
        _of_two(xgboost={}),
        spec={},
    ),
    Kind(
        "xgboost-workers",
        "XGBoost with `numProcPerNode` (`xgboost-workers`)",
        ("env",),
        _of_two(xgboost={}),
        spec={"trainer": {"numProcPerNode": 3}},
    ),
    Kind(
        "mpi",
        "MPI (`mpi-variables`, `mpi-settings`, `mpi-key-mode`)",
        ("env", "volumeMounts", "volumes"),
        {"mpi": {}, "numNodes": 1},
        jobs=_MPI,
        spec={"trainer": {"numNodes": 2}},
    ),
    Kind(
        "mpi-node",
        "MPI whose launcher is a node",
        ("env", "volumeMounts", "volumes"),
        {"mpi": {"runLauncherAsNode": True}, "numNodes": 1},
        jobs=_MPI,
        spec={"trainer": {"numNodes": 2}},
    ),
    Kind(
        "flux",
        "Flux (`flux-memory`)",
        ("volumeMounts",),
        {"flux": {}},
        spec={"trainer": {"numNodes": 2, "command": ["sleep", "1"]}},
    ),
    Kind(
        "flux-words",
        "Flux with words that a shell would split (`flux-words`)",
        ("command", "volumeMounts"),
        {"flux": {}},
        spec={"trainer": {"numNodes": 2, "command": ["echo", "a b"]}},
    ),
)


def document(kind: Kind, name: str, **spec: Any) -> Tree:
    """Return a TrainJob of a kind."""
    return train_job(name, runtime_name=kind.name, **{**kind.spec, **spec})


def row(kind: Kind) -> str:
    """Return a kind's row in the table of what the reference can take back."""
    fields = ", ".join(f"`{one}`" for one in kind.frozen)
    return f"| {kind.what} | {fields or 'nothing'} | {'no' if kind.frozen else 'yes'} |"
