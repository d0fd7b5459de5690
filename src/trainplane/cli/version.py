"""`trainplane version`: what is installed here, and the API that it speaks. Asks no cluster."""

from __future__ import annotations

import platform
import sys

from trainplane.cli.options import TextOrJson
from trainplane.cli.output import Output


def command(output: TextOrJson = "text") -> int:
    """Show the version of trainplane and of its API.

    No cluster is asked.
    """
    shown, out = versions(), Output(sys.stdout)
    if output == "json":
        out.json(shown)
    else:
        out.line(f"trainplane {shown['trainplane']}, Python {shown['python']}")
        out.line(f"API {shown['api']}")
    return 0


def versions() -> dict[str, str]:
    """Return what this installation is."""
    import trainplane  # noqa: PLC0415 looks its version up, which other commands need not wait for
    from trainplane.api import names  # noqa: PLC0415 heavy

    return {"trainplane": trainplane.__version__, "api": names.API_VERSION, "python": platform.python_version()}
