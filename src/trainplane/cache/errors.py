"""Why rows are not served.

```
CacheError (RuntimeError)
├── InvalidError        what was asked for cannot mean anything                                            user
│   └── PartitionError  a rank for which no row is left                                                    user
├── NotFoundError       there is no such file, folder, bucket or table                                     user
├── InexactError        it is there, and cannot be read exactly                                            user
├── ChangedError        a file is not what it was when the manifest was made                               source
├── ContradictionError  two workers decoded one fragment to different bytes                                source
├── DeniedError         a ticket or token is missing, forged or for something else                         user
│   └── ExpiredError    the ticket was good once                                       retryable           ours
├── UnreachableError    store, head or workers did not answer, past the deadline       retryable           admin
└── DiskError           the local disk refused a segment                               retryable           admin
```

`retryable`: the same may succeed later with nothing changed by a person. Nothing here is ever turned into fewer rows.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

Whose: TypeAlias = Literal["user", "source", "admin", "ours"]


class CacheError(RuntimeError):
    """Any reason why rows are not served."""

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
    def line(self) -> str:
        """What is wrong and what to do, in one line."""
        return f"{self}; {self.remedy}" if self.remedy else str(self)


class InvalidError(CacheError):
    """What was asked for cannot mean anything."""


class PartitionError(InvalidError):
    """A rank for which no row is left."""

    remedy = "read with no more ranks than there are rows"


class NotFoundError(CacheError):
    """There is no such thing at the source."""

    remedy = "check the location, letter by letter, and that these credentials may see it"


class InexactError(CacheError):
    """It is there, and cannot be read exactly."""


class ChangedError(CacheError):
    """A file is not what it was when the manifest was made."""

    whose = "source"
    remedy = "restart the cache to plan anew, and let nobody write there meanwhile"


class ContradictionError(CacheError):
    """Two workers decoded one fragment to different bytes."""

    whose = "source"
    remedy = "run all workers with one image, and let nobody write at the source meanwhile"


class DeniedError(CacheError):
    """A ticket or token is missing, forged or for something else."""

    remedy = "open the dataset at its head anew, with the token of its namespace"


class ExpiredError(DeniedError):
    """The ticket was good once."""

    retryable = True
    whose = "ours"


class UnreachableError(CacheError):
    """Store, head or workers did not answer, past the deadline."""

    retryable = True
    whose = "admin"
    remedy = "check the cache's pods, network policies and the store, then run again: a cursor resumes where it stood"


class DiskError(CacheError):
    """The local disk refused a segment."""

    retryable = True
    whose = "admin"
    remedy = "give cache workers a larger volume"
