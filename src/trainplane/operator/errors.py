"""What can go wrong while a TrainJob is made to run, and before; beside what `kube` and `render` raise.

```
OperatorError
├── RuntimeMissingError            the runtime is not there and no snapshot of it either       retryable    user
├── SnapshotError                  the snapshot cannot be read, or nothing shows it is true    retryable    user
├── ForeignObjectError             a name that we need belongs to somebody else's object       retryable    user
├── EarlierSelfError               what an earlier TrainJob of this name left is not gone yet  retryable    cluster
├── MakingError                    an object of a job of an older kind cannot be made          retryable    user
├── LoweringError                  an object of the older shape cannot be handed down          retryable    user
├── BehindError                    a mirror does not show what is so                          retryable    cluster
├── UnsupportedKubernetesError     the operator ends: the cluster is too old for it            not          cluster
└── TerminalError                  the TrainJob fails, with a `reason` for its condition
    ├── RuntimeUnsupportedError    runtimeRef names a kind that is no runtime                               user
    ├── SnapshotChangedError       the snapshot is not what the TrainJob began with                         user
    ├── SnapshotMissingError       the snapshot is gone, and the runtime has changed since                  user
    └── BudgetError                the TrainJob takes longer to render than it may                          user
```

`retryable`: it may become right without a change of the TrainJob, so the reconcile is repeated with growing waits.
Each message is shown to the user in an Event or in the condition Failed, or is the operator's last line to an
admin: it names the object and says what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from trainplane.api import names
from trainplane.kube.version import oldest

Whose: TypeAlias = Literal["user", "ours", "cluster"]


class OperatorError(Exception):
    """A TrainJob cannot be made to run as things stand."""

    retryable: ClassVar[bool] = True
    whose: ClassVar[Whose] = "user"


class RuntimeMissingError(OperatorError):
    """The runtime that the TrainJob names does not exist."""


class SnapshotError(OperatorError):
    """The ConfigMap that keeps the TrainJob's runtime cannot be used as it is."""


class ForeignObjectError(OperatorError):
    """An object that the TrainJob needs to be its own is not."""


class EarlierSelfError(OperatorError):
    """An object of a deleted TrainJob of the same name is still there; the garbage collector is on its way."""

    whose = "cluster"


class MakingError(OperatorError):
    """An object of a job of an older kind could not be made: which, and the error why."""

    def __init__(self, kind: str, name: str, why: Exception) -> None:
        super().__init__(f"{kind} {name} could not be made: {why}")
        self.kind = kind


class LoweringError(OperatorError):
    """An object of the older shape cannot become what it says, with a `reason` for its condition InSync."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BehindError(OperatorError):
    """A mirror is older than what it mirrors: what seems due was done or undone meanwhile, so nothing is written."""

    whose = "cluster"


class UnsupportedKubernetesError(OperatorError):
    """The cluster's Kubernetes is older than what this release was tried with."""

    retryable = False
    whose = "cluster"

    def __init__(self, version: str) -> None:
        problem = f"Kubernetes {version} is not supported: Trainplane needs {oldest()} or newer"
        super().__init__(f"{problem}. Upgrade the cluster first; docs/versions.md has what was tried.")


class TerminalError(OperatorError):
    """The TrainJob can never run, whatever is tried: it fails."""

    retryable = False
    reason: ClassVar[str]
    """The reason of the condition Failed."""


class RuntimeUnsupportedError(TerminalError):
    """The TrainJob names a kind of runtime that nobody serves."""

    reason = names.REASON_RUNTIME_NOT_SUPPORTED


class SnapshotChangedError(TerminalError):
    """The ConfigMap that kept the TrainJob's runtime holds something else now."""

    reason = names.REASON_SNAPSHOT_CHANGED


class SnapshotMissingError(TerminalError):
    """The ConfigMap that kept the TrainJob's runtime is gone, and the runtime is no longer what it was."""

    reason = names.REASON_SNAPSHOT_MISSING


class BudgetError(TerminalError):
    """An object takes longer to look at than it may hold up all others."""

    reason = names.REASON_OVER_BUDGET
