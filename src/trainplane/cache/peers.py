"""Fragments of a dataset that was written: from the part that lies here, or from a worker that has them already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from trainplane.cache import wire
from trainplane.cache.blocks import Blocks
from trainplane.cache.errors import UnreachableError
from trainplane.cache.tickets import ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainplane.cache.manifest import Fragment, Manifest
    from trainplane.cache.opening import HeadLine
    from trainplane.cache.staging import Staging
    from trainplane.cache.tickets import Signer

_SECONDS: Final = 600.0
"""For one fragment."""


class Peers:
    """Reads what was written to a cache; the cache itself is the source."""

    def __init__(self, line: HeadLine, signer: Signer, staging: Staging, own: str, clock: Callable[[], float]) -> None:
        self._line, self._signer, self._staging, self._own, self._clock = line, signer, staging, own, clock

    def decode(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        """Yield the batches of a part; whoever writes them down sees whether any is missing."""
        staged = self._staging.get(manifest.source.location, fragment)
        return iter(staged) if staged is not None else self._fetched(manifest, fragment)

    def _fetched(self, manifest: Manifest, fragment: Fragment) -> Iterator[Any]:
        start, stop = Blocks(manifest).fragment_span(manifest.fragments.index(fragment))
        grant = self._signer.grant(manifest.name, start, stop, self._clock() + _SECONDS)
        trouble = "nobody else is there"
        for name, location in self._line.open().members.items():
            if name == self._own:
                continue
            try:
                with self._line.access.connect(location) as client:
                    stream = client.do_get(fl.Ticket(ticket(grant)), self._line.access.options(_SECONDS))
                    for chunk in stream:
                        yield chunk.data
                    return
            except (fl.FlightError, pa.ArrowException, OSError) as error:
                trouble = str(wire.from_flight(error, name))
        raise UnreachableError(f"no worker gives part {fragment.name!r}: {trouble}")
