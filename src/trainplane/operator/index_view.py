"""The few fields of a TrainJob that the indexes of its store read, decoded once for all of them.

Every change of every TrainJob is decoded like this, so it has only what an index asks for.
"""

from __future__ import annotations

import msgspec


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Ref(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_ref: _Ref = _Ref()
    suspend: bool | None = None


class _Meta(msgspec.Struct, frozen=True):
    namespace: str = ""
    labels: dict[str, str] | None = None


class IndexView(msgspec.Struct, frozen=True):
    """A TrainJob at a glance."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status | None = None

    @property
    def conditions(self) -> list[_Condition]:
        """Its conditions."""
        return (self.status.conditions if self.status else None) or []
