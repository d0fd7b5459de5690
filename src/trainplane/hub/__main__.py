"""`python -m trainplane.hub`: run the hub server."""

from __future__ import annotations

import sys

from trainplane.hub import settings
from trainplane.hub.main import serve
from trainplane.hub.process import run


def main(arguments: list[str]) -> int:
    """Return the process's exit code: 0 after a clean end."""
    chosen = settings.parse(arguments)
    return run(serve(chosen), chosen.log_level)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
