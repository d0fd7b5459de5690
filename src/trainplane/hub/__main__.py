"""`python -m trainplane.hub`: run the hub server."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec
import uvloop

from trainplane.hub import settings
from trainplane.hub.errors import HubError
from trainplane.hub.main import serve
from trainplane.kube.errors import KubeError

log = logging.getLogger("trainplane.hub")

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object a line: the constant message, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "msg": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD},
        }
        if record.exc_info:
            line["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def main(arguments: list[str]) -> int:
    """Return the process's exit code: 0 after a clean end."""
    chosen = settings.parse(arguments)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=chosen.log_level.upper(), handlers=[handler], force=True)
    code = 0
    try:
        uvloop.run(serve(chosen))
    except* (HubError, KubeError, OSError) as group:
        code = 1
        for fault in group.exceptions:
            log.error("hub server ends", extra={"error": str(fault)})  # noqa: TRY400 the message says it all
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
