"""The older kinds of jobs, in one table: what each is called, of which parts it is made, what it takes for granted."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trainplane.api.legacy import names

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job, and how it differs from the others."""

    name: str
    plural: str
    specs: str
    """The field of the spec that maps replica types to replicas and their pods."""
    types: tuple[str, ...]
    """The replica types that there are, in the order of Kueue's podsets."""
    container: str
    """The container that trains. It gets the port; a job of v1 must have it in each template."""
    port_name: str
    port: int
    restart: str
    """The restart policy of replicas that name none."""
    operator: str
    """What the label operator-name says of its pods; Kueue and old clients select by it."""
    version: str = names.V1
    restarts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Replica types whose restart policy is another, if they name none."""
    managed_by: str = names.MANAGED_BY_TRAINING_OPERATOR
    """What managedBy says of a job that is ours."""
    scaled: bool = False
    """Whether `kubectl scale` and autoscalers may set the number of workers."""
    elastic: bool = False
    """Whether `spec.elasticPolicy` is a field of it."""

    @property
    def singular(self) -> str:
        """The kind's name for one object, in small letters."""
        return self.name.lower()

    @property
    def api_version(self) -> str:
        """What an object of the kind carries as `apiVersion`."""
        return f"{names.GROUP}/{self.version}"

    def review_path(self, verb: str) -> str:
        """Return where on the operator's webhook server jobs of the kind are reviewed: `mutate` or `validate`."""
        return f"/{verb}-{names.GROUP.replace('.', '-')}-{self.version}-{self.singular}"

    def restart_of(self, replica_type: str) -> str:
        """Return the restart policy of replicas of a type that name none."""
        return self.restarts.get(replica_type, self.restart)


PYTORCH: Final = Kind(
    names.PYTORCH_JOB,
    "pytorchjobs",
    specs="pytorchReplicaSpecs",
    types=(names.MASTER, names.WORKER),
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    restart=names.RESTART_ON_FAILURE,
    operator="pytorchjob-controller",
    scaled=True,
    elastic=True,
)
TENSORFLOW: Final = Kind(
    names.TF_JOB,
    "tfjobs",
    specs="tfReplicaSpecs",
    types=(names.CHIEF, names.MASTER, names.PS, names.WORKER, names.EVALUATOR),
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    restart=names.RESTART_NEVER,
    operator="tfjob-controller",
)
XGBOOST: Final = Kind(
    names.XGBOOST_JOB,
    "xgboostjobs",
    specs="xgbReplicaSpecs",
    types=(names.MASTER, names.WORKER),
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    restart=names.RESTART_NEVER,
    operator="xgboostjob-controller",
)
PADDLE: Final = Kind(
    names.PADDLE_JOB,
    "paddlejobs",
    specs="paddleReplicaSpecs",
    types=(names.MASTER, names.WORKER),
    container="paddle",
    port_name="master",
    port=36543,
    restart=names.RESTART_ON_FAILURE,
    operator="paddlejob-controller",
    scaled=True,
    elastic=True,
)
JAX: Final = Kind(
    names.JAX_JOB,
    "jaxjobs",
    specs="jaxReplicaSpecs",
    types=(names.WORKER,),
    container="jax",
    port_name="jaxjob-port",
    port=6666,
    restart=names.RESTART_NEVER,
    operator="jaxjob-controller",
    scaled=True,
)
MPI: Final = Kind(
    names.MPI_JOB,
    "mpijobs",
    version=names.V2BETA1,
    specs="mpiReplicaSpecs",
    types=(names.LAUNCHER, names.WORKER),
    container="mpi",
    port_name="mpi-port",
    port=9999,
    restart=names.RESTART_NEVER,
    restarts=MappingProxyType({names.LAUNCHER: names.RESTART_ON_FAILURE}),
    operator="mpi-operator",
    managed_by=names.MANAGED_BY_MPI_OPERATOR,
)
"""MPIJob as it is stored. What is written as v1 is converted to it; container and port mean something to v1 alone."""

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {kind.name: kind for kind in (PYTORCH, TENSORFLOW, XGBOOST, PADDLE, JAX, MPI)}
)
"""Every kind of job that has one, by its name."""

BY_PLURAL: Final[Mapping[str, Kind]] = MappingProxyType({kind.plural: kind for kind in KINDS.values()})
"""The same by the names that an admin chooses them by in `legacy.kinds`."""
