"""What every Kubernetes object has: metadata, owners, conditions."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import field

from trainplane.api.declaration import Envelope, Field, Moment


class OwnerReference(Envelope, frozen=True):
    """The object that another belongs to and is deleted with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Envelope, frozen=True):
    """The metadata of an object as the API server writes it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Moment | None = None
    deletion_timestamp: Moment | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: list[str] = field(default_factory=list)
    owner_references: list[OwnerReference] = field(default_factory=list)


class TemplateMeta(Envelope, frozen=True):
    """The metadata that a template may set on what is made of it.

    Each field must stand in the CRD, or the API server prunes the labels and annotations that Kueue writes here.
    """

    annotations: Annotated[dict[str, str], Field()] = field(default_factory=dict)
    finalizers: Annotated[list[str], Field()] = field(default_factory=list)
    labels: Annotated[dict[str, str], Field()] = field(default_factory=dict)
    name: Annotated[str, Field()] = ""
    namespace: Annotated[str, Field()] = ""


class Condition(Envelope, frozen=True):
    """One thing that is true or false of an object, since when and why."""

    type: Annotated[
        str,
        Field(
            "What the condition is about: Suspended, Complete, Failed or OutputSent.",
            max_length=316,
            pattern=(
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        ),
    ]
    status: Annotated[str, Field("True, False or Unknown.", enum=("True", "False", "Unknown"))]
    reason: Annotated[
        str,
        Field(
            "One word for programs: why the condition has its status.",
            required=True,
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ] = ""
    message: Annotated[str, Field("A sentence for people.", max_length=32768, required=True)] = ""
    last_transition_time: Annotated[
        Moment | None, Field("When the status last changed.", format="date-time", required=True)
    ] = None
    observed_generation: Annotated[
        int, Field("The metadata.generation that the condition speaks of.", format="int64", minimum=0)
    ] = 0


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.type == kind), None)


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Return whether a condition is there and True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def upsert(conditions: Sequence[Condition], new: Condition, now: datetime) -> list[Condition]:
    """Return the conditions with `new` in the place of its type, or at the end.

    The time of transition moves only when the status changes: to the time that `new` carries, else to `now`.
    """
    old = find(conditions, new.type)
    if old is not None and old.status == new.status:
        since = old.last_transition_time
    else:
        since = new.last_transition_time or now
    settled = msgspec.structs.replace(new, last_transition_time=since)
    if old is None:
        return [*conditions, settled]
    return [settled if condition.type == new.type else condition for condition in conditions]


def whole_seconds(moment: datetime) -> datetime:
    """Return a moment in UTC without its fraction: Kubernetes' times have whole seconds."""
    return moment.astimezone(UTC).replace(microsecond=0)


def owner(api_version: str, kind: str, meta: ObjectMeta) -> OwnerReference:
    """Return the reference that makes an object belong to its one controller, and be deleted before it."""
    return OwnerReference(
        api_version=api_version, kind=kind, name=meta.name, uid=meta.uid, controller=True, block_owner_deletion=True
    )


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that controls an object, or None."""
    return next((reference for reference in meta.owner_references if reference.controller), None)
