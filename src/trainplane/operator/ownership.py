"""Whose an object is that has a name which a TrainJob needs. Pure.

A TrainJob's objects have names that follow from its own, so others may have taken them: an earlier TrainJob of the same
name, whose objects the garbage collector takes a moment later; or anybody. Only what this TrainJob controls is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainplane.api import names
from trainplane.api.document import to_tree
from trainplane.api.meta import owner
from trainplane.operator.errors import EarlierSelfError, ForeignObjectError

if TYPE_CHECKING:
    from trainplane.api.meta import ObjectMeta
    from trainplane.api.tree import Tree
    from trainplane.operator.stores import Meta


def owned_by(job: ObjectMeta) -> Tree:
    """Return the reference that makes an object the TrainJob's, to be deleted with it."""
    return to_tree(owner(names.API_VERSION, names.TRAIN_JOB, job))


def check_owner(kind: str, found: Meta, job: ObjectMeta) -> None:
    """See that an object is a TrainJob's own.

    Raises:
        EarlierSelfError: it belongs to an earlier TrainJob of the same name, and goes by itself.
        ForeignObjectError: it belongs to somebody else, or to nobody.
    """
    by = found.controller
    if by is not None and by.uid == job.uid:
        return
    if by is not None and (by.kind, by.name) == (names.TRAIN_JOB, job.name):
        raise EarlierSelfError(f"{kind} {found.name} of an earlier TrainJob of this name is about to be removed")
    raise ForeignObjectError(
        f"{kind} {found.name} is not controlled by this TrainJob, which needs its name: delete it, or give the "
        "TrainJob another name"
    )
