"""The table of all commands. Nothing is imported here: a command's file is when it is run, or asked for its help."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Panel: TypeAlias = Literal["Jobs", "Queues and fleet", "Runtimes", "Cluster", "This program"]


class Command(NamedTuple):
    """A command of the table."""

    name: str
    """As it is typed; `fleet check` is the command `check` of the group `fleet`."""
    module: str
    """Whose function `command` it is."""
    summary: str
    """What it does, in a line; its docstring begins with it."""
    panel: Panel
    """Under which heading it stands in the help."""


COMMANDS: Final = (
    Command("watch", "trainplane.cli.watch", "Show a TrainJob live until it is over", "Jobs"),
    Command("explain", "trainplane.cli.explain", "Say why a TrainJob failed or does not get on", "Jobs"),
    Command("bundle", "trainplane.cli.bundle", "Write what is known of a TrainJob into a file", "Jobs"),
    Command("report", "trainplane.cli.report", "Write the page of a TrainJob as one HTML file", "Jobs"),
    Command("migrate", "trainplane.cli.migrate", "Turn older jobs into TrainJobs", "Jobs"),
    Command("top", "trainplane.cli.top", "Show the fleet at a glance", "Queues and fleet"),
    Command(
        "fleet check", "trainplane.cli.fleet_check", "Say what would stop a job on each worker", "Queues and fleet"
    ),
    Command("fleet sync", "trainplane.cli.fleet_sync", "Apply the hub's runtimes to the workers", "Queues and fleet"),
    Command(
        "ui", "trainplane.cli.ui", "Show the fleet, its jobs and one job as pages in a browser", "Queues and fleet"
    ),
    Command("runtime check", "trainplane.cli.runtime_check", "Say what is wrong with files of runtimes", "Runtimes"),
    Command("version", "trainplane.cli.version", "Show the version of trainplane and of its API", "This program"),
)
"""In the order of the help."""
