"""Whether a text can be the name of an object: a DNS subdomain for most kinds, a label for TrainJobs. Pure."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 253
_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_TRAIN_JOB: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def is_object_name(text: str) -> bool:
    """Return whether a text can be the name of a Secret, a claim or a runtime; none says one of another namespace."""
    return len(text) <= LONGEST and _NAME.fullmatch(text) is not None


def is_train_job_name(text: str) -> bool:
    """Return whether a text can be the name of a TrainJob: pods and their addresses begin with it."""
    return _TRAIN_JOB.fullmatch(text) is not None
