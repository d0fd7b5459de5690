"""What can go wrong when a fleet is looked at from its hub, beside what `kube` and `render` raise.

```
HubError
├── NoSuchJobError            the hub has no job of that kind and name                                 user
├── NotPlacedError            the TrainJob is on no worker, so there is nothing to see yet  retryable  cluster
├── NotAHubError              the cluster has no MultiKueue: probably another context is meant         user
├── NoSuchWorkerError         no MultiKueueCluster has that name                                       user
├── WorkerCredentialsError    the worker's kubeconfig is missing, or Kueue would refuse it             admin
├── WorkerUnreachableError    the worker did not answer, or refused the credentials         retryable  cluster
├── UnreadableError           an object of a cluster does not look like its kind                       cluster
├── ManifestError             a TrainJob that was given as text cannot be read                         user
├── NoLogError                no container of what was asked for has printed anything yet   retryable  cluster
├── QueryError                a parameter of a request to the hub's API is wrong                       user
├── TooManyReadersError       as many logs are being read as there may be at once           retryable  user
├── ArchiveError              the volume of kept logs cannot be used                                   admin
├── RecordError               a record on the volume is damaged, or of a newer release                 admin
├── FullError                 the volume has no room for more, and nothing may go           retryable  admin
├── NotKeptError              a job's logs went by retention while something was added to them         ours
├── PodRefusedError           a pod is not such as an operator makes: nothing of it is kept            user
└── FrontProxyChangedError    the authority that signs for the API server is another one    retryable  cluster
```

`retryable`: the same call may succeed later with nothing changed by a person. `whose` says who has to act. Each message
is shown to people who know neither our code nor Kueue's, so it names the object and says what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from trainplane.api import names

Whose: TypeAlias = Literal["user", "admin", "cluster", "ours"]


class HubError(Exception):
    """The hub cannot answer as things stand."""

    retryable: ClassVar[bool] = False
    whose: ClassVar[Whose] = "user"


class NoSuchJobError(HubError):
    """The hub has no such job."""

    def __init__(self, namespace: str, name: str, kind: str = names.TRAIN_JOB) -> None:
        self.namespace = namespace
        self.name = name
        super().__init__(f"there is no {kind} {name!r} in namespace {namespace!r} of the hub")


class NotPlacedError(HubError):
    """The TrainJob runs on no worker (yet)."""

    retryable = True
    whose = "cluster"

    def __init__(self, namespace: str, name: str, reason: str) -> None:
        self.namespace = namespace
        self.name = name
        self.reason = reason
        super().__init__(f"TrainJob {namespace}/{name} is on no worker: {reason}")


class NotAHubError(HubError):
    """The cluster has no MultiKueue."""

    def __init__(self, server: str) -> None:
        self.server = server
        super().__init__(
            f"{server} serves no MultiKueueClusters: install Kueue there, or choose the hub's context with --context"
        )


class NoSuchWorkerError(HubError):
    """No worker has that name."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        super().__init__(f"the hub has no MultiKueueCluster {cluster!r}: see kubectl get multikueueclusters")


class WorkerCredentialsError(HubError):
    """The kubeconfig by which MultiKueue reaches a worker is not there or must not be used."""

    whose = "admin"

    def __init__(self, cluster: str, problem: str) -> None:
        self.cluster = cluster
        self.problem = problem
        super().__init__(f"worker {cluster}: {problem}")


class WorkerUnreachableError(HubError):
    """The worker did not answer, or did not let MultiKueue's credentials in."""

    retryable = True
    whose = "cluster"

    def __init__(self, cluster: str, cause: Exception) -> None:
        self.cluster = cluster
        self.cause = cause
        super().__init__(f"worker {cluster} cannot be reached: {cause}")


class UnreadableError(HubError):
    """A cluster sent an object that is none of its kind."""

    whose = "cluster"


class ManifestError(HubError):
    """A TrainJob that was given as text cannot be read."""


class NoLogError(HubError):
    """There is no log of that kind, yet or any more."""

    retryable = True
    whose = "cluster"


class QueryError(HubError):
    """A request to the hub's API asks for something that there cannot be."""


class TooManyReadersError(HubError):
    """A user, a namespace or all together read as many logs as they may at once."""

    retryable = True


class ArchiveError(HubError):
    """The volume of kept logs cannot be used."""

    whose = "admin"


class RecordError(HubError):
    """A record on the volume cannot be believed: it is set aside, and what it was about is not shown."""

    whose = "admin"


class FullError(HubError):
    """There is no room for more: the bounds of `Retention` are reached by what may not go."""

    retryable = True
    whose = "admin"


class NotKeptError(HubError):
    """What was kept of a TrainJob is gone by retention, so nothing is added to it any more."""

    whose = "ours"


class PodRefusedError(HubError):
    """A pod says of itself what no pod of a job says."""


class FrontProxyChangedError(HubError):
    """The authority that signs the API server's certificate for us was replaced; a new process trusts the new one."""

    retryable = True
    whose = "cluster"
