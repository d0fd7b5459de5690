"""The help of the program and of its groups: a pure function of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.cli.commands import Command

_PLUGIN: Final = "kubectl-"
"""How kubectl finds programs that are commands of it."""


def program_name(path: str) -> str:
    """Return what people type for the program at a path: `kubectl trainjob` for kubectl's plugin."""
    name = path.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
    return f"kubectl {name.removeprefix(_PLUGIN)}" if name.startswith(_PLUGIN) else "trainplane"


def help_text(program: str, commands: Sequence[Command], group: str = "") -> str:
    """Return the help of the program, or of a group of it, with its commands under their headings."""
    shown = [one for one in commands if not group or one.name.startswith(f"{group} ")]
    width = max(len(one.name) for one in shown)
    typed = f"{program} {group} COMMAND" if group else f"{program} COMMAND"
    lines = [f"Usage: {typed} [ARGUMENTS]", "", "Distributed training on Kubernetes."]
    for panel in dict.fromkeys(one.panel for one in shown):
        lines += ["", f"{panel}:"]
        lines += [f"  {one.name:<{width}}  {one.summary}" for one in shown if one.panel == panel]
    return "\n".join([*lines, "", f"`{typed} --help` says what a command takes.", ""])
