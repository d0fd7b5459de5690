"""The tables of schemes: which module fetches what a URI names, or sends there. Each is loaded when it is needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from trainplane.initializers.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainplane.initializers.destination import Destination
    from trainplane.initializers.request import Request
    from trainplane.initializers.source import Source

SCHEMES: Final = {
    "hf": "hub",
    "s3": "s3",
    "gs": "gcs",
    "az": "azure",
    "https": "https",
    "http": "https",
    "pvc": "folder",
    "file": "folder",
}
"""Scheme → the module beside this one whose `open_source` knows it."""


OUTPUT_SCHEMES: Final = {
    "s3": "s3",
    "gs": "gcs",
    "az": "azure",
    "hf": "commits",
    "pvc": "folder",
    "file": "folder",
}
"""Scheme → the module whose `open_destination` knows it."""


def open_source(request: Request) -> Source:
    """Return the source that a URI names."""
    source: Source = _module(request, SCHEMES).open_source(request)
    return source


def open_destination(request: Request) -> Destination:
    """Return the destination that a URI names."""
    destination: Destination = _module(request, OUTPUT_SCHEMES).open_destination(request)
    return destination


def _module(request: Request, table: Mapping[str, str]) -> Any:
    module = table.get(request.scheme)
    if module is None:
        known = ", ".join(f"{scheme}://" for scheme in table)
        raise InvalidError(
            f"{request.variable} has the scheme {request.scheme[:40]!r}, and this program knows {known}",
            "use one of these schemes",
        )
    return importlib.import_module(f"{__name__}.{module}")
