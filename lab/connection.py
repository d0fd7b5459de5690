"""A connection to an API server for the lab's own bulk work; tests of the product use the product's client."""

from __future__ import annotations

import http.client
from typing import Self

from lab.errors import LabError


class Connection:
    """A kept-alive connection, with headers that go with each request."""

    def __init__(self, connection: http.client.HTTPSConnection, headers: dict[str, str] | None = None) -> None:
        self._connection = connection
        self._headers = headers or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def send(self, method: str, path: str, body: str | None = None, content_type: str = "application/json") -> bytes:
        """Send one request and return the answer's body; a `LabError` tells what the server refused."""
        self._connection.request(method, path, body, {"Content-Type": content_type, **self._headers})
        response = self._connection.getresponse()
        data = response.read()
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            message = f"{method} {path}: {response.status} {data[:500].decode(errors='replace')}"
            raise LabError(message)
        return data
