from __future__ import annotations

import importlib
import pkgutil

import pytest

import trainplane

ROOMS = [module.name for module in pkgutil.iter_modules(trainplane.__path__) if module.ispkg]


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_says_what_lives_there(room: str) -> None:
    documentation = importlib.import_module(f"trainplane.{room}").__doc__
    assert documentation
    assert len(documentation.splitlines()[0]) > 20
