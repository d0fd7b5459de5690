"""A list that people can look at: a table in a notebook and in print, a list to programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, TypeVar, overload

from trainplane.client.types.shown import when_shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainplane.client.display.tables import Table

T = TypeVar("T")
What: TypeAlias = Literal["TrainJobs", "runtimes", "events"]


@when_shown
def _register() -> None:
    from trainplane.client.display import cards, text  # noqa: F401, PLC0415 each registers how types look


class Listing(list[T]):
    """What the client's `list_` methods return. `print` it, or let a notebook show it."""

    def __init__(self, items: Iterable[T], what: What) -> None:
        super().__init__(items)
        self.what: What = what

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> Listing[T]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> T | Listing[T]:
        found: Any = super().__getitem__(index)
        return Listing(found, self.what) if isinstance(index, slice) else found

    def __str__(self) -> str:
        import shutil  # noqa: PLC0415 slow to import

        from trainplane.client.display.text import lay_out  # noqa: PLC0415 loaded when shown

        return lay_out(self._table(), shutil.get_terminal_size((120, 24)).columns) or f"no {self.what}"

    __repr__ = __str__
    """A list that is typed at a prompt is looked at; `list(…)` is one for programs."""

    def _repr_html_(self) -> str:
        from trainplane.client.display import cards  # noqa: PLC0415 loaded when shown

        items: list[Any] = list(self)
        if not items:
            return cards.nothing(self.what)
        if self.what == "TrainJobs":
            return cards.jobs_list(items, _now())
        return cards.runtimes_list(items) if self.what == "runtimes" else cards.events_list(items)

    def _table(self) -> Table:
        from trainplane.client.display import tables  # noqa: PLC0415 loaded when shown

        items: list[Any] = list(self)
        if self.what == "TrainJobs":
            return tables.jobs_table(items, _now())
        return tables.runtimes_table(items) if self.what == "runtimes" else tables.events_table(items)


def _now() -> Any:
    from datetime import UTC, datetime  # noqa: PLC0415 loaded when shown

    return datetime.now(UTC)
