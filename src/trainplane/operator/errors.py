"""What can go wrong while a TrainJob is made to run, beside what `kube` and `render` raise.

```
OperatorError
├── RuntimeMissingError        the runtime is not there and no snapshot of it either      retryable    user
├── RuntimeUnsupportedError    runtimeRef names a kind that is no runtime                              user
├── SnapshotError              the snapshot is not this TrainJob's, or cannot be read     retryable    user
├── ForeignObjectError         a name that we need belongs to somebody else's object      retryable    user
├── EarlierSelfError           what an earlier TrainJob of this name left is not gone yet retryable    cluster
└── BudgetError                an object takes longer to look at than it may                           user
```

`retryable`: it may become right without a change of the TrainJob, so the reconcile is repeated with growing waits.
Each message is shown to the user in an Event, so it names the object and says what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

Whose: TypeAlias = Literal["user", "ours", "cluster"]


class OperatorError(Exception):
    """A TrainJob cannot be made to run as things stand."""

    retryable: ClassVar[bool] = True
    whose: ClassVar[Whose] = "user"


class RuntimeMissingError(OperatorError):
    """The runtime that the TrainJob names does not exist."""


class RuntimeUnsupportedError(OperatorError):
    """The TrainJob names a kind of runtime that nobody serves."""

    retryable = False


class SnapshotError(OperatorError):
    """The ConfigMap that keeps the TrainJob's runtime cannot be used."""


class ForeignObjectError(OperatorError):
    """An object that the TrainJob needs to be its own is not."""


class BudgetError(OperatorError):
    """An object takes longer to look at than it may hold up all others."""

    retryable = False


class EarlierSelfError(OperatorError):
    """An object of a deleted TrainJob of the same name is still there; the garbage collector is on its way."""

    whose = "cluster"
