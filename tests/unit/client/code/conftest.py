from __future__ import annotations

import linecache
import sys
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.code.stage import Laptop, Node, Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    folder = tmp_path / "laptop"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield Laptop(folder)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    folder = tmp_path / "node"
    folder.mkdir()
    return Node(folder)


@pytest.fixture
def notebook() -> Iterator[Notebook]:
    notebook = Notebook()
    yield notebook
    for name in notebook.names:
        linecache.cache.pop(name, None)
