"""Whose an object is that has a name which a TrainJob needs. Pure.

A TrainJob's objects have names that follow from its own, so others may have taken them: an earlier TrainJob of the same
name, whose objects the garbage collector takes a moment later; or anybody. Only what this TrainJob controls is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.operator.stores import Meta


def check_owner(kind: str, found: Meta, job: ObjectMeta) -> None:
    """See that an object is a TrainJob's own.

    Raises:
        EarlierSelfError: it belongs to an earlier TrainJob of the same name, and goes by itself.
        ForeignObjectError: it belongs to somebody else, or to nobody.
    """
    owner = found.controller
    if owner is not None and owner.uid == job.uid:
        return
    if owner is not None and (owner.kind, owner.name) == (names.TRAIN_JOB, job.name):
        raise EarlierSelfError(f"{kind} {found.name} of an earlier TrainJob of this name is about to be removed")
    raise ForeignObjectError(
        f"{kind} {found.name} is not controlled by this TrainJob, which needs its name: delete it, or give the "
        "TrainJob another name"
    )
