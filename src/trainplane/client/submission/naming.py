"""Names for TrainJobs that were given none: what runs, and a few letters drawn so that no two are the same."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from trainplane.client.types.runtimes import Runtime
from trainplane.client.types.trainers import CustomTrainer, CustomTrainerContainer, ScriptTrainer

if TYPE_CHECKING:
    from trainplane.client.types.trainers import Trainer

LONGEST_WORD: Final = 24
"""Characters of what runs: pods and their addresses add to a name, and 63 are all there is room for."""
DRAWN: Final = 5
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Those that Kubernetes draws from: they spell no words, and none looks like another."""
_OTHERS: Final = re.compile(r"[^a-z0-9]+")


def draw_name(runtime: str | Runtime, trainer: Trainer | None) -> str:
    """Return such as `fit-x7k2m`: of the function, the script, the image, or else the runtime."""
    import secrets  # noqa: PLC0415 slow to import

    drawn = "".join(secrets.choice(_LETTERS) for _ in range(DRAWN))
    return f"{_word(_what_runs(runtime, trainer))}-{drawn}"


def _what_runs(runtime: str | Runtime, trainer: Trainer | None) -> str:
    if isinstance(trainer, CustomTrainer):
        return str(getattr(trainer.func, "__name__", ""))
    if isinstance(trainer, ScriptTrainer):
        return PurePath(trainer.script).stem
    if isinstance(trainer, CustomTrainerContainer) and trainer.image:
        return re.split(r"[:@]", trainer.image.rpartition("/")[2])[0]
    return runtime.name if isinstance(runtime, Runtime) else runtime


def _word(text: str) -> str:
    """Return a text as the beginning of a name: small letters, digits and `-`, a letter first."""
    word = _OTHERS.sub("-", text.lower()).lstrip("-0123456789")[:LONGEST_WORD].strip("-")
    return word or "job"
