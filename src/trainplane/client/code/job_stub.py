"""What `import trainplane` finds inside a job whose image has not got it: reports work, submitting jobs does not.

Modules that define a function to train with often import the client, too, at their top. They must load in the job.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

DATASET_PATH = os.environ.get("TRAINPLANE_DATASET_PATH", "/workspace/dataset")
MODEL_PATH = os.environ.get("TRAINPLANE_MODEL_PATH", "/workspace/model")


def __getattr__(name: str) -> Any:
    if name == "update_trainjob_status":
        from trainplane.client.reporting import update_trainjob_status  # noqa: PLC0415 it imports this module

        return update_trainjob_status
    if name == "progress":
        return import_module("trainplane.progress")
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {"__init__": _refuse, "__doc__": "Not available inside this job."})


def _refuse(self: Any, *_: Any, **__: Any) -> None:
    name = type(self).__name__
    raise RuntimeError(
        f"trainplane.{name} is not available inside this job: the image has not got trainplane. If the job is to "
        f'submit jobs itself, write packages_to_install=["trainplane"]'
    )
