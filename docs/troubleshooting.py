"""`python -m docs.troubleshooting [--check]`: write docs/troubleshooting.md from the catalogue, or say it is stale.

The page has every class of `explain.catalogue`, in its words: what `trainplane explain`, the Failed condition and the
SDK's errors name, this page explains.
"""  # noqa: INP001 a command beside the page it writes, no package

from __future__ import annotations

import sys
from pathlib import Path

from docs.emitted import emit
from trainplane.explain.catalogue import CLASSES

PAGE = Path(__file__).parent / "troubleshooting.md"
_HEAD = """\
# Troubleshooting

<!-- written by docs/troubleshooting.py from src/trainplane/explain/catalogue.py: change the words there, then run \
`make manifests` -->

```sh
trainplane explain JOB -n NAMESPACE          # the first fault, its evidence, what to do
trainplane bundle JOB -n NAMESPACE -o FILE   # all that is known, without secrets, for somebody else
trainplane explain --bundle FILE             # the same answer from the file, anywhere
```
In Python: `print(client.explain_job("my-run"))`; `client.get_job("my-run").cause.kind` is the class. In YAML:
`status.firstFault.cause`. [Failures, and who names them](explain.md) shows them side by side with what the status says.

One cause is named, the *first* fault: when one node dies, the others die of it, so a node that lost a peer or was told
to stop counts less than one that failed by itself, whatever the nodes' clocks say. An answer is `certain` only if
Kubernetes itself says so, or if the program ended by the very lines that are shown; else it is `likely`, or `unknown`
with all the evidence there is. *Heals*: the same may succeed when it is tried again with nothing changed."""
_LOOKED_FOR = (
    ("NCCL timeouts", ("CollectiveTimeout", "Hang", "NcclError", "PeerLost", "RendezvousTimeout")),
    ("OOM kills", ("OutOfMemory", "CudaOutOfMemory", "SharedMemory")),
    ("scheduling failures", ("Unschedulable", "ClaimPending", "SchedulingGated", "Queued", "QueueMissing")),
    (
        "data that does not arrive",
        (
            "DataMissing",
            "AccessDenied",
            "CredentialsExpired",
            "VolumeTooSmall",
            "SourceUnreachable",
            "InitializerFailed",
        ),
    ),
    ("image pull errors", ("ImagePull", "WrongArchitecture")),
    ("runtime misconfigurations", ("RuntimeMissing", "RuntimeDiffers", "WrongCommand", "WrongWorldSize", "BadMount")),
    ("SDK issues", ("PythonError", "MissingModule", "WrongArguments", "AdmissionDenied", "WebhookDown")),
)
"""What people look for, and the classes of it."""


def write_page() -> str:
    """Return the page."""
    parts = [_HEAD, "## By what people look for", _table(("looked for", "classes"), _looked_for())]
    groups = dict.fromkeys(one.group for one in CLASSES.values())
    for group in groups:
        parts += [f"## {group}", *(_entry(one.name) for one in CLASSES.values() if one.group == group)]
    return "\n\n".join(parts) + "\n"


def _entry(name: str) -> str:
    one = CLASSES[name]
    notes = [*(["heals"] if one.heals else []), *(["at best likely"] if one.certainty == "likely" else [])]
    after = f" *({', '.join(notes)})*" if notes else ""
    return f"### {one.name}\nIt {one.says}.{after}\n\n{one.remedy[:1].upper()}{one.remedy[1:]}."


def _looked_for() -> list[tuple[str, str]]:
    return [
        (words, ", ".join(f"[{name}](#{CLASSES[name].name.lower()})" for name in names)) for words, names in _LOOKED_FOR
    ]


def _table(headers: tuple[str, ...], rows: list[tuple[str, str]]) -> str:
    lines = [headers, ("---",) * len(headers), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if the page is stale."""
    return emit(PAGE, write_page, "the catalogue", arguments)


if __name__ == "__main__":
    sys.exit(main())
