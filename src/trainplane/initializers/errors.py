"""Why a dataset or a model did not arrive.

```
InitializerError (RuntimeError)
├── InvalidError        the environment or the URI cannot mean anything                                    user
├── NotFoundError       there is no such repository, bucket, object, claim or file                         user
├── DeniedError         the store refused these credentials, or wants some                                 user
│   └── ExpiredError    the credentials were good once                                                     user
├── NoSpaceError        the volume is too small, said before the first byte where sizes are known          user
├── OccupiedError       the folder holds what somebody else asked for                                      user
├── ChecksumError       what arrived is not what the source says it has                                    source
├── HostileError        the source names or sizes what no honest source would                              source
├── ChangedError        the source changed while it was read                           retryable           source
├── ThrottledError      the source asked to slow down, past the deadline               retryable           source
├── UnreachableError    the source did not answer, or broke off, past the deadline     retryable           source
├── VolumeError         the volume refused a write, for another reason than space      retryable           admin
└── BrokenError         something of ours that must not happen                                             ours
```

`retryable`: the same step may succeed later with nothing changed by a person; its exit code is 75 (EX_TEMPFAIL), that
of all others 1. Each message says what is wrong, `remedy` what to do.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

Whose: TypeAlias = Literal["user", "source", "admin", "ours"]


class InitializerError(RuntimeError):
    """Any reason why the data is not there."""

    retryable: ClassVar[bool] = False
    whose: ClassVar[Whose] = "user"
    remedy: str = ""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy or type(self).remedy

    @property
    def cause(self) -> str:
        """The one word by which a reader and a program tell causes apart."""
        return type(self).__name__.removesuffix("Error")

    @property
    def exit_code(self) -> int:
        """What the process ends with."""
        return 75 if self.retryable else 1


class InvalidError(InitializerError):
    """The environment or the URI cannot mean anything."""


class NotFoundError(InitializerError):
    """There is no such thing at the source."""

    remedy = "check storageUri, letter by letter, and that these credentials may see it"


class DeniedError(InitializerError):
    """The store refused these credentials, or wants some."""

    remedy = "name a Secret with credentials that may read it in spec.initializer.*.secretRef"


class ExpiredError(DeniedError):
    """The credentials were good once."""

    remedy = "put a fresh token into the Secret that spec.initializer.*.secretRef names, and run the job again"


class NoSpaceError(InitializerError):
    """The volume is too small."""

    remedy = "ask for a larger claim, or leave files out with IGNORE_PATTERNS"


class OccupiedError(InitializerError):
    """The folder holds what somebody else asked for."""

    remedy = "use another claim or sub-path, or empty the folder when nobody trains from it"


class ChecksumError(InitializerError):
    """What arrived is not what the source says it has."""

    whose = "source"
    remedy = "upload the file again, or its checksum; if it persists, something between changes bytes"


class HostileError(InitializerError):
    """The source names or sizes what no honest source would."""

    whose = "source"
    remedy = "do not train from this source before somebody has looked at it"


class ChangedError(InitializerError):
    """The source changed while it was read."""

    retryable = True
    whose = "source"
    remedy = "run again when nobody writes there, or name a fixed revision"


class ThrottledError(InitializerError):
    """The source asked to slow down, past the deadline."""

    retryable = True
    whose = "source"
    remedy = "run again later, lower PARALLEL, or raise RETRY_SECONDS"


class UnreachableError(InitializerError):
    """The source did not answer, or broke off, past the deadline."""

    retryable = True
    whose = "source"
    remedy = "check name, network policy and proxy from this namespace, then run again: what arrived is kept"


class VolumeError(InitializerError):
    """The volume refused a write."""

    retryable = True
    whose = "admin"
    remedy = "check the claim's access mode, owner and state"


class BrokenError(InitializerError):
    """Something of ours that must not happen."""

    whose = "ours"
    remedy = "please report it with this message"
