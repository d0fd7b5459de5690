"""`python -m docs.names [--check]`: write docs/references/names.md from the code, or say that it is stale.

What a person meets in `kubectl get`, `describe` and `-o yaml`: phases, conditions with their reasons, Events, stages of
the timeline, labels and annotations. Each stands there with the words that the code has for it; one without words
fails, so none is forgotten.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from docs.emitted import cell, emit, table
from docs.source import words_below
from trainplane.api import names
from trainplane.lifecycle import events, phase, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

PAGE = Path(__file__).parent / "references" / "names.md"
_HEAD = """\
# States, events, reasons and labels

<!-- written by docs/names.py from src/trainplane: change the words there, then run `make manifests` -->

What a TrainJob shows of itself, and what it is told by. Pods of a TrainJob get Events too, whose reason is one of the
[classes of trouble](../troubleshooting.md); so is `status.firstFault.cause`."""
_CONDITIONS = ("SUSPENDED", "COMPLETE", "FAILED", "OUTPUT_SENT")
_OURS = ("trainer.kubeflow.org/", "trainplane.dev/", f"{names.HUB_GROUP}/")
"""How labels and annotations begin that we gave a meaning."""
_LISTED = re.compile(r"^    (\w+(?:, \w+)*)(?: {2,}(.*))?$", re.MULTILINE)


def write_page() -> str:
    """Return the page.

    Raises:
        ValueError: a name has no words in the code.
    """
    words = {name: cell(text) for name, text in words_below(names).items()}
    conditions = [(f"`{getattr(names, one)}`", words[one]) for one in _CONDITIONS]
    reasons = [(f"`{getattr(names, one)}`", words[one]) for one in words if one.startswith("REASON_")]
    marks = [
        (f"`{value}`", words[one])
        for one in words
        if one.startswith(("LABEL_", "ANNOTATION_")) and (value := getattr(names, one)).startswith(_OURS)
    ]
    sections: list[tuple[str, str, Sequence[tuple[str, ...]]]] = [
        ("Phases", "`status.phase`, the column STATE of `kubectl get trainjobs`.", _listed(phase)),
        ("Conditions", "`status.conditions`.", conditions),
        ("Reasons", "Of these conditions. An end that JobSet tells has JobSet's own reason.", reasons),
        ("Events", "`kubectl describe trainjob`; steps that follow each other closely are one.", sorted(_events())),
        ("Stages", "`status.timeline[].stage`: when it reached each.", _listed(timeline)),
        ("Labels and annotations", "That we gave a meaning.", marks),
    ]
    silent = [row[0] for part in (conditions, reasons, marks) for row in part if not row[1]]
    if silent:
        raise ValueError(f"src/trainplane/api/names.py has no words below these: {', '.join(silent)}")
    told = [
        f"## {title}\n\n{about}\n\n{table(('name', 'means', 'type')[: len(rows[0])], rows)}"
        for title, about, rows in sections
    ]
    return "\n\n".join([_HEAD, *told]) + "\n"


def _listed(module: ModuleType) -> list[tuple[str, str]]:
    """Return the names that a module's docstring lists, with what it says of them."""
    found = _LISTED.findall(module.__doc__ or "")
    return [(", ".join(f"`{one}`" for one in listed.split(", ")), cell(text)) for listed, text in found]


def _events() -> Iterator[tuple[str, str, str]]:
    """Yield each Event of `lifecycle.events`: its reason, message and type, with `…` where runs differ."""
    for call in ast.walk(ast.parse(inspect.getsource(events))):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "EventContent":
            kind, reason, message = (_said(argument) for argument in call.args)
            yield f"`{reason}`", cell(message), kind


def _said(node: ast.expr) -> str:
    """Return what an expression would say, as far as the source tells."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        return re.sub(r"…+", "…", "".join(parts))
    if isinstance(node, ast.IfExp):
        return f"{_said(node.body)}; or: {_said(node.orelse)}"
    if isinstance(node, ast.Attribute):
        return str(getattr(names, node.attr))
    return str(getattr(events, ast.unparse(node), "the condition's reason and message"))


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale or a name has no words."""
    try:
        return emit(PAGE, write_page, "the code", arguments)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
