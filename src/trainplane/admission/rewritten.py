"""What Kueue up to 0.19 rewrites without meaning to.

Kueue asks the trainer's Go plugins what pods a TrainJob becomes, and hands them the very object that it writes back
afterwards. Two of them change `spec.trainer` in it:

| plugin    | `command`                                                 | `args`    |
|-----------|-----------------------------------------------------------|-----------|
| torchtune | `tune run`, and behind it recipe, config and settings     | as it was |
| Flux      | `/bin/bash /etc/flux-config/entrypoint.sh` and what it was | gone      |

`spec.trainer` may not change, so such a job would never start. No user writes these by hand: they are what we compute,
too, when the job runs. The stored trainer stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trainplane.admission.semantic_equality import same
from trainplane.api import names
from trainplane.render.plugins.torchtune import ENTRYPOINT, MANAGED

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLUX: Final = ["/bin/bash", f"{names.FLUX_CONFIG_MOUNT_PATH}/entrypoint.sh"]
_RENDEZVOUS: Final = "--rdzv_endpoint="
_RECIPES: Final = ("full_finetune_", "lora_finetune_")


def is_rewritten(trainer: Any, stored: Any) -> bool:
    """Return whether a trainer is the stored one as a Go plugin rewrites it."""
    if not (isinstance(trainer, dict) and isinstance(stored, dict)):
        return False
    command, before = trainer.get("command"), stored.get("command")
    if not isinstance(command, list) or not same(_without_words(trainer), _without_words(stored)):
        return False
    if before == ENTRYPOINT:
        return same(trainer.get("args"), stored.get("args")) and _is_tuning(command)
    return not trainer.get("args") and before != command and command[:2] == _FLUX and len(command) == len(_FLUX) + 1


def _is_tuning(command: Sequence[Any]) -> bool:
    """Return whether a command is `tune run` with what torchtune's part of the torch plugin puts behind it."""
    if command[:2] != ENTRYPOINT or not all(isinstance(word, str) for word in command):
        return False
    rest = list(command[2:])
    if rest and rest[0].startswith(_RENDEZVOUS):
        rest = rest[1:]
    return (
        len(rest) >= len(("recipe", "--config", "config"))
        and rest[0].startswith(_RECIPES)
        and rest[1] == "--config"
        and all(word.partition("=")[0] in MANAGED for word in rest[3:])
    )


def _without_words(trainer: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in trainer.items() if field not in {"command", "args"}}
