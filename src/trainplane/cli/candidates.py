"""What a shell offers for the word that is being typed: commands, options, values, names of TrainJobs.

The scripts of `trainplane completion` run the program with the words so far and `_TRAINPLANE_COMPLETE` set, and offer
the lines that it prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainplane.cli.app import Group, leaf
from trainplane.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Sequence


def candidates(words: Sequence[str]) -> list[str]:
    """Return what the last word may become; it may be empty."""
    *before, word = words or [""]
    command = next((one for one in COMMANDS if before[: one.name.count(" ") + 1] == one.name.split()), None)
    if command is None:
        return [name for name in _next_names(before) if name.startswith(word)]
    given = before[command.name.count(" ") + 1 :]
    found = leaf(command)
    context = found.make_context(command.name, list(given), resilient_parsing=True)
    if word.startswith("-"):
        names = [name for one in found.get_params(context) for name in one.opts]
        return sorted(name for name in names if name.startswith(word) and name.startswith("-"))
    chosen = _asked(found.get_params(context), given, context)
    return [] if chosen is None else [item.value for item in chosen.shell_complete(context, word)]


def _next_names(before: Sequence[str]) -> list[str]:
    """Return the words that may follow names of groups."""
    group = " ".join(before)
    if group and not any(one.name.startswith(f"{group} ") for one in COMMANDS):
        return []
    return Group("trainplane", COMMANDS, group).list_commands(None)


def _asked(parameters: Sequence[Any], given: Sequence[str], context: Any) -> Any:
    """Return the parameter whose value is being typed: of the option before it, else the first open argument."""
    for one in parameters:
        if one.param_type_name == "option" and not one.is_flag and given and given[-1] in one.opts:
            return one
    for one in parameters:
        if one.param_type_name == "argument" and (one.nargs == -1 or context.params.get(one.name) is None):
            return one
    return None
