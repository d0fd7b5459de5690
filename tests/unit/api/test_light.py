"""The types land in notebooks: importing them must cost msgspec and nothing else."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import trainplane.api

MODULES = [f"trainplane.api.{module.name}" for module in pkgutil.iter_modules(trainplane.api.__path__)]

PROBE = """
import importlib, json, sys
before = set(sys.modules)
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


def test_importing_every_module_brings_only_msgspec_and_the_standard_library() -> None:
    ran = subprocess.run([sys.executable, "-c", PROBE, json.dumps(MODULES)], capture_output=True, text=True, check=True)
    others = {name for name in json.loads(ran.stdout) if name not in sys.stdlib_module_names}
    # msgspec looks for typing_extensions and uses it where it is installed.
    assert others - {"typing_extensions"} == {"msgspec", "trainplane"}


def test_the_probe_looks_at_all_modules() -> None:
    assert {"trainplane.api.trainjob", "trainplane.api.quantity", "trainplane.api.crds"} <= set(MODULES)
