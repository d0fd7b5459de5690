"""What can go wrong between a function on a laptop and a run on N nodes.

```
TrainplaneError (RuntimeError)
├── InvalidError (ValueError)      an argument cannot mean anything; the message names it                     user
│   ├── CodeError                  a function or a workspace cannot be shipped as it is                       user
│   ├── PlainSecretError           a token stands in the open; the message shows how to refer to it           user
│   └── UnsupportedError           this backend cannot do that; the message names one that can                user
├── NotFoundError                  there is no such TrainJob, runtime or step                                 user
├── RefusedError                   the cluster refused the request: its own words are in the message          user
├── ForbiddenError                 you may not; the message names the verb and the resource                   admin
├── UnreachableError               the cluster or the container engine does not answer             retryable  cluster
├── JobFailedError                 the TrainJob failed; `cause` says which step, why, and its last lines      user
├── JobDeletedError                the TrainJob was deleted while somebody waited for it                      user
├── JobTimeoutError (TimeoutError) it did not get there in time; the message says where it is      retryable  user
│   └── JobStuckError              it waits for what will not come by itself; the message says what            user
├── EngineError                    docker or podman failed; the message has what it printed                   user
└── BrokenBackendError             something of ours that must not happen                                     ours
```

The built-in bases are those that code written for the `kubeflow` SDK catches. `retryable`: the same call may succeed
later with nothing changed by a person. `whose` says who has to act.
"""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from typing import Self

    from trainplane.client.types.jobs import Cause, TrainJob

Whose: TypeAlias = Literal["user", "admin", "cluster", "ours"]


class TrainplaneError(RuntimeError):
    """Any error of the SDK."""

    retryable: ClassVar[bool] = False
    whose: ClassVar[Whose] = "user"

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes as it is: the words of an error are no arguments to make it from."""
        state = {"args": self.args, **self.__dict__}
        return copyreg.__newobj__, (type(self), *self.args), state  # type: ignore[attr-defined] # pickle's own


class InvalidError(TrainplaneError, ValueError):
    """An argument cannot mean anything."""


class CodeError(InvalidError):
    """A function or a workspace cannot be shipped as it is."""


class PlainSecretError(InvalidError):
    """A secret stands in the open."""


class UnsupportedError(InvalidError):
    """This backend cannot do that."""


class NotFoundError(TrainplaneError):
    """There is no such thing."""


class RefusedError(TrainplaneError):
    """The cluster refused the request."""


class ForbiddenError(TrainplaneError):
    """The caller's role does not allow it."""

    whose = "admin"


class UnreachableError(TrainplaneError):
    """The cluster or the container engine does not answer."""

    retryable = True
    whose = "cluster"


class JobFailedError(TrainplaneError):
    """The TrainJob failed."""

    def __init__(self, job: TrainJob, cause: Cause) -> None:
        self.job = job
        self.cause = cause
        super().__init__(f"TrainJob {job.name} failed: {cause}")

    def __reduce__(self) -> tuple[type[Self], tuple[TrainJob, Cause]]:
        """Let it be raised again in another process: it is not made from its words."""
        return type(self), (self.job, self.cause)


class JobDeletedError(TrainplaneError):
    """The TrainJob is gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"TrainJob {name} was deleted while it was waited for")

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """As above."""
        return type(self), (self.name,)


class JobTimeoutError(TrainplaneError, TimeoutError):
    """The TrainJob did not get there in time."""

    retryable = True

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        """As above; a TimeoutError cannot be made without its words."""
        return type(self), self.args


class JobStuckError(JobTimeoutError):
    """The TrainJob waits for what will not come by itself."""

    retryable = False


class EngineError(TrainplaneError):
    """Docker or podman failed."""


class BrokenBackendError(TrainplaneError):
    """Something that must not happen."""

    whose = "ours"
