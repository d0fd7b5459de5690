"""What the doctor looks at on this machine: Python, a container engine, PyTorch. Starts nothing but `docker info`."""

from __future__ import annotations

import importlib.util
import sys
from typing import Final

from trainplane.client.doctor.facts import Machine
from trainplane.client.errors import TrainplaneError

_SYSTEMS: Final = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def look_here() -> Machine:
    """Return what this machine has. An engine that does not answer is waited for, for seconds."""
    python, system = sys.version_info[:2], _SYSTEMS.get(sys.platform, sys.platform)
    if sys.platform != "linux":
        return Machine(python, system)
    engine, trouble = _engine()
    return Machine(python, system, engine, trouble, torch=importlib.util.find_spec("torch") is not None)


def _engine() -> tuple[str, str]:
    """Return the engine that answers, else what is wrong with each. Only Linux has what these modules import."""
    from trainplane.client.backends.container.engine import find_engine  # noqa: PLC0415
    from trainplane.client.types.backends import ContainerBackendConfig  # noqa: PLC0415

    try:
        return find_engine(ContainerBackendConfig()).name, ""
    except (TrainplaneError, OSError) as error:
        return "", str(error)
