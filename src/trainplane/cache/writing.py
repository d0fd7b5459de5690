"""Filling a cache: parts of record batches, each to the workers that will hold it, sealed by one commit.

```python
with Writing.open("HOST:50051", "reviews", access=Access(token=b"...")) as writing:
    writing.put("part-0", batches)      # whole, on two disks, when it returns
    writing.commit()                    # nothing is served before, everything after
```

Writers in several processes put their parts, and one of them commits with what the others were told (`stored`).
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.errors import ContradictionError, InvalidError
from trainplane.cache.opening import Access, HeadLine
from trainplane.cache.written import Commit, Committed, Stored, writable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

_SECONDS: Final = 3600.0
"""For one part."""
_TROUBLE: Final = (fl.FlightError, pa.ArrowException, OSError)


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
        descriptor = fl.FlightDescriptor.for_path(self._dataset, part)
        with ExitStack() as streams:
            ways = [self._way(streams, where, descriptor, first.schema) for where in self._line.places(descriptor)]
            for batch in chain([first], upcoming):
                rows += batch.num_rows
                for way in ways:
                    way.write(batch)
            stored = [way.finish() for way in ways]
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

    def _way(self, streams: ExitStack, location: str, descriptor: Any, schema: Any) -> _Stream:
        """Begin a part at a worker; its stream, and after it its connection, end with `streams`."""
        access = self._line.access
        client = streams.enter_context(access.connect(location))
        options = access.options(_SECONDS)
        return streams.enter_context(_Stream(client, f"the worker at {location}", descriptor, schema, options))


class _Stream:
    """A part on its way to one worker; given up if it is left before the worker's receipt.

    Unless it is told so, a worker takes what came for all of it, or waits for the rest: the end of a Flight stream
    looks the same however it came about.
    """

    def __init__(self, client: Any, whom: str, descriptor: Any, schema: Any, options: Any) -> None:
        self._whom = whom
        with self._asking():
            self._writer, self._answers = client.do_put(descriptor, schema, options)
        self._finished = False

    def write(self, batch: Any) -> None:
        """Send a batch."""
        with self._asking():
            self._writer.write_batch(batch)

    def finish(self) -> Stored:
        """Say that this is all; return what the worker says of it."""
        with self._asking():
            self._writer.done_writing()
            told = self._answers.read()
            self._writer.close()
        self._finished = True
        if told is None:
            raise ContradictionError(f"{self._whom} took a part and gave no receipt")
        return wire.decoded(told.to_pybytes(), Stored)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn what the worker answers, or that it does not, into an error of ours."""
        try:
            yield
        except _TROUBLE as error:
            raise wire.from_flight(error, self._whom) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._finished:
            return
        with suppress(*_TROUBLE):
            self._writer.write_metadata(wire.GIVEN_UP)
            self._writer.close()
