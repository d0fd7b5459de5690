"""Typer's tree of the table's commands, and how one is run.

Help is plain text: Rich's panels would cost every `--help` a tenth of a second, and do not paste into a ticket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from trainplane.cli.commands import COMMANDS
from trainplane.cli.errors import CommandError, tell, told
from trainplane.cli.helping import help_text
from trainplane.cli.options import VERBOSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainplane.cli.commands import Command

_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def run(program: str, words: Sequence[str]) -> int:
    """Run the command that the words name; what goes wrong is told in a line on standard error."""
    root = Group(program, COMMANDS)
    context: Any = None
    try:
        context = root.make_context(program, list(words))
        with context:
            return int(root.invoke(context) or 0)
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        return 1
    except typer.TyperException as error:
        return tell(_usage(error), verbose=False)
    except Exception as error:
        verbose = context is not None and VERBOSE in context.meta
        if told(error) is None:
            raise
        return tell(error, verbose=verbose)


class Group(TyperGroup):
    """The program, or a group of it, whose commands are those of the table that begin with its name."""

    def __init__(self, program: str, commands: Sequence[Command], group: str = "") -> None:
        self._program, self._table, self._group = program, commands, group
        super().__init__(
            name=group or program,
            commands=_Lazy(program, commands, group),  # type: ignore[arg-type] # only read, and that is enough
            rich_markup_mode=None,
            context_settings=dict(_SETTINGS),
        )

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, without importing what they name."""
        del ctx
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help from the table."""
        del ctx
        formatter.write(help_text(self._program, self._table, self._group))


class _Lazy(Mapping[str, Any]):
    """The commands of a group by their names, each imported when it is looked at."""

    def __init__(self, program: str, commands: Sequence[Command], group: str) -> None:
        self._program, self._group, self._table = program, group, commands
        begin = f"{group} " if group else ""
        rest = [one.name.removeprefix(begin) for one in commands if one.name.startswith(begin)]
        self._names = list(dict.fromkeys(name.partition(" ")[0] for name in rest))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        whole = f"{self._group} {name}".strip()
        for one in self._table:
            if one.name == whole:
                return leaf(one)
        return Group(self._program, self._table, whole)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def leaf(command: Command) -> Any:
    """Return a command of the table as Typer's, with its file imported."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=dict(_SETTINGS))
    app.command(name=command.name.rpartition(" ")[2])(import_module(command.module).command)
    return get_command(app)


def _usage(error: typer.TyperException) -> CommandError:
    """Return what is wrong with a command line, and where its help is."""
    context = getattr(error, "ctx", None)
    where = f"see: {context.command_path} --help" if context is not None else ""
    words = error.format_message().strip() or "a command is missing"
    return CommandError(words[:1].lower() + words[1:].rstrip("."), where)
