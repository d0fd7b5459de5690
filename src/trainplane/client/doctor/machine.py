"""What the doctor looks at on this machine: Python, a container engine, PyTorch. Starts nothing but `docker info`."""

from __future__ import annotations

import importlib.util
import platform
import sys

from trainplane.client.backends.container.engine import find_engine
from trainplane.client.doctor.facts import Machine
from trainplane.client.errors import TrainplaneError
from trainplane.client.types.backends import ContainerBackendConfig


def look_here() -> Machine:
    """Return what this machine has. An engine that does not answer is waited for, for seconds."""
    engine, trouble = "", ""
    try:
        engine = find_engine(ContainerBackendConfig()).name
    except (TrainplaneError, OSError) as error:
        trouble = str(error)
    return Machine(
        python=sys.version_info[:2],
        system=platform.system(),
        engine=engine,
        engine_trouble=trouble,
        torch=importlib.util.find_spec("torch") is not None,
    )
