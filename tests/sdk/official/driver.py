"""Runs in an SDK's venv: reads cells of Python, one JSON line each, runs them, answers with a JSON line each.

What every cell begins with, its imports, is the program's only argument. A cell is run as a notebook runs one: what its
last line gives is its result, and what it prints, what the SDK logs and what it asks of the API server come with it.
Cells run at the same time, each in a thread with names of its own; answers come as cells end. An SDK reads functions by
their source, so a cell is a file. Nothing of ours is imported here.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import io
import json
import logging
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

PRELUDE = sys.argv[1]
REQUESTS = "urllib3.connectionpool"
"""Who logs each request, at level DEBUG."""


class PrintedByThread(io.TextIOBase):
    """Standard output of cells: what a thread prints is its cell's."""

    def __init__(self) -> None:
        self.local = threading.local()

    def write(self, text: str) -> int:
        sink: io.StringIO | None = getattr(self.local, "sink", None)
        return (sink or sys.stderr).write(text)


class Heard(logging.Handler):
    """Warnings by thread; requests whatever thread of the client's pool sends them, so only of cells that run alone."""

    def __init__(self) -> None:
        super().__init__()
        self.local = threading.local()
        self.requests: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == REQUESTS:
            _, _, rest = record.getMessage().partition('"')
            if " HTTP/" in rest:
                self.requests.append(rest.partition(" HTTP/")[0])
        elif record.levelno >= logging.WARNING:
            getattr(self.local, "lines", []).append(record.getMessage())


class Driver:
    """Runs cells and answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = count()
        self.out = sys.stdout
        self.answering = threading.Lock()
        self.printed = PrintedByThread()
        self.heard = Heard()
        sys.stdout = self.printed
        logging.getLogger().addHandler(self.heard)
        logging.getLogger(REQUESTS).setLevel(logging.DEBUG)

    def answer(self, request: dict[str, Any]) -> None:
        """Run one request's cell and write the answer."""
        self.printed.local.sink = printed = io.StringIO()
        warnings: list[str] = []
        self.heard.local.lines = warnings
        reply: dict[str, Any] = {"id": request["id"], "value": None, "error": None}
        first = len(self.heard.requests)
        try:
            reply["value"] = self.run(request["cell"], request["given"])
        except Exception as error:  # noqa: BLE001 whatever it is, it is the answer
            reply["error"] = problem(error)
        reply |= {"printed": printed.getvalue(), "warnings": warnings, "requests": self.heard.requests[first:]}
        with self.answering:
            self.out.write(json.dumps(reply) + "\n")
            self.out.flush()

    def run(self, cell: str, given: dict[str, Any]) -> Any:
        """Run a cell and return what its last line gives."""
        path = self.folder / f"cell_{next(self.numbers)}.py"
        path.write_text(cell)
        tree = ast.parse(cell, str(path))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        exec(PRELUDE, names)  # noqa: S102 running code is what a driver is for
        names.update(given)
        exec(compile(tree, str(path), "exec"), names)  # noqa: S102 the same
        if not isinstance(last, ast.Expr):
            return None
        return plain(eval(compile(ast.Expression(last.value), str(path), "eval"), names))  # noqa: S307 the same


def plain(value: Any) -> Any:
    """Return a result as JSON has it: the SDK's dataclasses as objects, what is iterated over as a list."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | Iterator):
        return [plain(one) for one in value]
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def problem(error: BaseException) -> dict[str, str]:
    """Return what a cell raised, and what the API server said where that is the cause."""
    cause = error.__cause__
    return {
        "type": type(error).__name__,
        "message": str(error),
        "cause": str(getattr(cause, "body", None) or cause or ""),
        "trace": "".join(traceback.format_exception(error)),
    }


def main() -> None:
    """Serve until standard input ends."""
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(Path(folder))
        exec(PRELUDE, {})  # noqa: S102 import once, before threads do
        for line in sys.stdin:
            threading.Thread(target=driver.answer, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
