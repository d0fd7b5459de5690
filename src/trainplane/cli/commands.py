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
    Command("run", "trainplane.cli.run", "Run a script, a function or a TrainJob, and show it to its end", "Jobs"),
    Command("list", "trainplane.cli.listed", "List TrainJobs with their states", "Jobs"),
    Command("get", "trainplane.cli.get", "Show a TrainJob: state, steps, timeline, events", "Jobs"),
    Command("watch", "trainplane.cli.watch", "Show a TrainJob live until it is over", "Jobs"),
    Command("logs", "trainplane.cli.logs", "Show what the steps of a TrainJob print", "Jobs"),
    Command("events", "trainplane.cli.events", "Show what happened to a TrainJob and its parts", "Jobs"),
    Command(
        "suspend", "trainplane.cli.suspend", "Hold TrainJobs: their pods end, their place and history stay", "Jobs"
    ),
    Command("resume", "trainplane.cli.resume", "Let TrainJobs go on that are suspended", "Jobs"),
    Command("scale", "trainplane.cli.scale", "Let a TrainJob go on with another number of nodes", "Jobs"),
    Command("retry", "trainplane.cli.retry", "Train again what failed or is complete, as it was submitted", "Jobs"),
    Command("delete", "trainplane.cli.delete", "Delete TrainJobs with their pods and logs", "Jobs"),
    Command("cp", "trainplane.cli.cp", "Bring the output of a TrainJob to this machine", "Jobs"),
    Command(
        "render", "trainplane.cli.render", "Show what a TrainJob becomes: its JobSet and what else is made", "Jobs"
    ),
    Command("diff", "trainplane.cli.diff", "Show what a file would change of the TrainJob that exists", "Jobs"),
    Command("explain", "trainplane.cli.explain", "Say why a TrainJob failed or does not get on", "Jobs"),
    Command("bundle", "trainplane.cli.bundle", "Write what is known of a TrainJob into a file", "Jobs"),
    Command("migrate", "trainplane.cli.migrate", "Turn older jobs into TrainJobs", "Jobs"),
    Command("queue", "trainplane.cli.queued", "Say why a TrainJob waits, and what would start it", "Queues and fleet"),
    Command("top", "trainplane.cli.top", "Show the fleet at a glance", "Queues and fleet"),
    Command(
        "fleet check", "trainplane.cli.fleet_check", "Say what would stop a job on each worker", "Queues and fleet"
    ),
    Command("fleet sync", "trainplane.cli.fleet_sync", "Apply the hub's runtimes to the workers", "Queues and fleet"),
    Command("runtimes", "trainplane.cli.runtimes", "List the runtimes that TrainJobs can run on", "Runtimes"),
    Command("runtime check", "trainplane.cli.runtime_check", "Say what is wrong with files of runtimes", "Runtimes"),
    Command("doctor", "trainplane.cli.doctor", "Say whether this cluster is fit for you", "Cluster"),
    Command(
        "completion", "trainplane.cli.completion", "Print a script that completes commands in a shell", "This program"
    ),
    Command("version", "trainplane.cli.version", "Show the version of trainplane and of its API", "This program"),
)
"""In the order of the help."""
