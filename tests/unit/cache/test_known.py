from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys, msgspec, trainplane.cache as package
for module in pkgutil.walk_packages(package.__path__, "trainplane.cache."):
    if module.name.rpartition(".")[2] not in {"jax", "torch", "__main__"}:
        importlib.import_module(module.name)
found = [kind for kind in msgspec.Struct.__subclasses__() if kind.__module__.startswith("trainplane.cache.")]
looked = []
def met(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "get_class_annotations":
        looked.append(kind.__name__)
for kind in found:
    sys.setprofile(met)
    msgspec.json.Decoder(kind)
    sys.setprofile(None)
print(len(found), *looked)
"""


def test_every_type_that_comes_from_elsewhere_is_known_once_its_module_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    count, *unknown = done.stdout.split()
    assert int(count) > 10
    assert unknown == ["Ticket"], "what is not decoded is not made known"
