"""Filling a cache: parts of record batches, each to the workers that will hold it, sealed by one commit.

```python
with Writing.open("HOST:50051", "reviews", access=Access(token=b"...")) as writing:
    writing.put("part-0", batches)      # whole, on two disks, when it returns
    writing.commit()                    # nothing is served before, everything after
```

Writers in several processes put their parts, and one of them commits with what the others were told (`stored`).
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.errors import ContradictionError, InvalidError
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.written import Commit, Committed, Stored, writable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

_SECONDS: Final = 3600.0
"""For one part."""


class Writing:
    """One writer of a dataset."""

    def __init__(self, line: HeadLine, dataset: str) -> None:
        self._line, self._dataset = line, dataset
        self._schema: Any = None
        self.stored: dict[str, list[Stored]] = {}
        """What each part's workers answered; a commit is made of it."""

    @classmethod
    def open(cls, endpoint: str, dataset: str, *, access: Access | None = None) -> Self:
        """Return a writer of the dataset that the cache at `endpoint` waits for."""
        return cls(HeadLine(endpoint, access), dataset)

    def put(self, part: str, batches: Iterable[Any]) -> int:
        """Write a part, or write it anew; return its rows. It is then whole on each disk that will hold it."""
        upcoming = iter(batches)
        first = next(upcoming, None)
        if first is None:
            raise InvalidError(f"part {part!r} has no batch", "leave it out")
        self._schema = self._schema or writable(first.schema)
        rows = 0
        with ExitStack() as lines:
            descriptor = fl.FlightDescriptor.for_path(self._dataset, part)
            try:
                streams = [
                    self._stream(lines, where, descriptor, first.schema) for where in self._line.places(descriptor)
                ]
                for batch in chain([first], upcoming):
                    rows += batch.num_rows
                    for writer, _ in streams:
                        writer.write_batch(batch)
                stored = [_answer(writer, answers) for writer, answers in streams]
            except (fl.FlightError, pa.ArrowException, OSError) as error:
                raise wire.from_flight(error, f"a worker that should have part {part!r}") from None
        if any(one.rows != rows for one in stored):
            raise ContradictionError(f"part {part!r} arrived with other rows than the {rows} that were sent")
        self.stored[part] = stored
        return rows

    def commit(self) -> Committed:
        """Seal the dataset with the parts of `stored`; return what is served from now on. Again is the same."""
        if self._schema is None:
            raise InvalidError("nothing was put", "put a part first")
        rows = sum(stored[0].rows for stored in self.stored.values())
        receipts = tuple(one.receipt for stored in self.stored.values() for one in stored)
        return self._line.commit(Commit(self._dataset, self._schema.serialize().to_pybytes(), rows, receipts))

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stream(self, lines: ExitStack, location: str, descriptor: Any, schema: Any) -> tuple[Any, Any]:
        client = lines.enter_context(self._line.access.connect(location))
        writer, answers = client.do_put(descriptor, schema, self._line.access.options(_SECONDS))
        return writer, answers


def _answer(writer: Any, answers: Any) -> Stored:
    """Return what a worker says of a part that was sent to it."""
    writer.done_writing()
    told = answers.read()
    writer.close()
    if told is None:
        raise ContradictionError("a worker took a part and gave no receipt")
    return wire.decoded(told.to_pybytes(), Stored)
