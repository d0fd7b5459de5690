"""The table of commands: what it says of each is so, and a command costs nothing before it is run."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from trainplane.cli import main
from trainplane.cli.commands import COMMANDS, Command
from trainplane.cli.errors import CommandError, told
from trainplane.cli.helping import help_text, program_name
from trainplane.client.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_its_summary_first_and_its_help(command: Command, capsys: Printed) -> None:
    work: Callable[..., int] = import_module(command.module).command
    assert (inspect.getdoc(work) or "").splitlines()[0] == f"{command.summary}."
    assert main([*command.name.split(), "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Usage: trainplane {command.name}")
    assert command.summary in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= 80


def test_names_stand_once_and_no_group_is_a_command() -> None:
    names = [one.name for one in COMMANDS]
    assert len(set(names)) == len(names)
    assert not {name.rpartition(" ")[0] for name in names} & set(names)


def test_the_help_names_every_command_within_a_terminal() -> None:
    shown = help_text("trainplane", COMMANDS)
    for one in COMMANDS:
        assert f"  {one.name} " in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_help_of_a_group_is_of_its_own_commands(capsys: Printed) -> None:
    assert main(["fleet", "--help"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Usage: trainplane fleet COMMAND")
    assert "fleet sync" in printed
    assert "runtime check" not in printed


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/bin/trainplane", "trainplane"),
        ("/usr/bin/kubectl-trainjob", "kubectl trainjob"),
        ("C:\\Scripts\\kubectl-trainjob.exe", "kubectl trainjob"),
        ("src/trainplane/cli/__main__.py", "trainplane"),
    ],
)
def test_the_program_is_called_as_it_was_typed(path: str, name: str) -> None:
    assert program_name(path) == name


def test_an_error_is_one_line_with_what_to_do() -> None:
    assert told(CommandError("--job is missing", "name one")) == ("--job is missing; name one", 2)
    assert told(NotFoundError("there is no\n  TrainJob a")) == ("there is no TrainJob a", 2)
    assert told(ZeroDivisionError()) is None


def test_more_is_told_on_demand(capsys: Printed) -> None:
    words = ["explain", "job", "--kubeconfig", "/nowhere"]
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main([*words, "-v"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_what_steers_a_terminal_is_written_out(capsys: Printed) -> None:
    assert main(["runtime", "check", "\033[2Jno.yaml"]) == 2
    assert "\033" not in capsys.readouterr().err
    assert main(["fleet", "\033[2J"]) == 2
    assert "\033" not in capsys.readouterr().err
