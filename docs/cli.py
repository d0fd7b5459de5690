"""`python -m docs.cli [--check]`: write docs/cli.md from the table of commands and its options, or say it is stale."""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from docs.emitted import emit
from trainplane.cli.app import leaf
from trainplane.cli.commands import COMMANDS, Command

PAGE = Path(__file__).parent / "cli.md"
_HEAD = """\
# The command line

<!-- written by docs/cli.py from src/trainplane/cli: change the words there, then run `make manifests` -->

`trainplane COMMAND`, or `kubectl trainjob COMMAND`: `pip install trainplane` brings both. Commands work with your own
kubeconfig and your own rights, as kubectl does; on a hub they see dispatched jobs through the hub view, without being
told. `trainplane COMMAND --help` says what stands here.

## Exit codes
| code | means |
|---|---|
| 0 | all is well |
| 1 | something is wrong with what was asked about: the job failed, a check found something |
| 2 | the command line is wrong, or what it names cannot be read: standard error says what to do, and more with `-v` |
| 130 | interrupted by Ctrl-C |
| 141 | whoever read the output went away |

## Output
Colours only on a terminal, and never with `NO_COLOR` set. In a file or a pipe each row of a table is a line.
`-o json` and `-o yaml` print objects as the API server has them, `-o name` what kubectl takes. Text that others wrote
(names, messages, logs) cannot steer your terminal: control characters are written out.

## Completion
```sh
trainplane completion bash > ~/.local/share/bash-completion/completions/trainplane
trainplane completion zsh > "${fpath[1]}/_trainplane"
trainplane completion fish > ~/.config/fish/completions/trainplane.fish
```
Names of TrainJobs are completed where the cluster tells them within two seconds."""


def write_page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for panel in dict.fromkeys(one.panel for one in COMMANDS):
        commands = [one for one in COMMANDS if one.panel == panel]
        rows = [f"| [`{one.name}`](#{_anchor(one)}) | {_cell(one.summary)} |" for one in commands]
        parts.append("\n".join([f"## {panel}", "| command | does |", "|---|---|", *rows]))
        parts += map(_section, commands)
    return "\n\n".join(parts) + "\n"


def _anchor(command: Command) -> str:
    return f"trainplane-{command.name.replace(' ', '-')}"


def _section(command: Command) -> str:
    """Return what is said of a command: its help, its arguments, its options."""
    found = leaf(command)
    context = found.make_context(f"trainplane {command.name}", [], resilient_parsing=True)
    parameters = [one for one in found.get_params(context) if one.name != "help"]
    usage = " ".join([f"trainplane {command.name}", *found.collect_usage_pieces(context)])
    rows = [_row(one, context) for one in parameters]
    table = ["", "| argument | means |", "|---|---|", *rows] if rows else []
    return "\n".join([f"### trainplane {command.name}", f"`{usage}`", "", _paragraphs(found), *table])


def _paragraphs(found: Any) -> str:
    """Return the help of a command, each paragraph a line that Markdown wraps."""
    return "\n\n".join(" ".join(one.split()) for one in inspect.cleandoc(found.help or "").split("\n\n"))


def _row(parameter: Any, context: Any) -> str:
    names, text = parameter.get_help_record(context) or (parameter.make_metavar(context), "")
    return f"| `{_cell(names)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    """Return a text that a cell of a table can hold."""
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    return emit(PAGE, write_page, "the table of commands", arguments)


if __name__ == "__main__":
    sys.exit(main())
