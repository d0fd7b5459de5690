"""Options of `TrainerClient.train`: `from trainplane.options import Name, Labels, Queue`."""

from trainplane.client.options import *  # noqa: F403 exactly its public names
from trainplane.client.options import __all__ as __all__  # noqa: PLC0414 public, as there
