"""`python -m tests.conformance.mutation.launch SOCKET ARGUMENTS...`: our operator, which plants faults as it is told.

The operator is the real one, with the arguments that it is always started with; beside it a thread waits at a Unix
socket for the id of a fault, or an empty line for none, and says when it is planted, or why it cannot be.
"""

from __future__ import annotations

import socket
import sys
import threading
from typing import TYPE_CHECKING

from tests.conformance.mutation.faults import FAULTS
from tests.conformance.mutation.plant import Garden, PlantError
from trainplane.operator.__main__ import main as operate

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = "planted"
SECONDS = 30.0
"""How long an order may take: the process is busy, not gone."""


def main(arguments: list[str]) -> int:
    """Run the operator until it is told to end."""
    where, *rest = arguments
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where)
    listener.listen()
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    return operate(rest)


def _serve(listener: socket.socket) -> None:
    garden, known = Garden(), {fault.id: fault for fault in FAULTS}
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as lines:
            wanted = lines.readline().strip()
            try:
                if wanted:
                    garden.plant(known[wanted])
                else:
                    garden.clear()
                said = PLANTED
            except (KeyError, PlantError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            lines.write(f"{said}\n")


def order(where: Path, fault_id: str) -> None:
    """Have a fault planted by the operator that listens there, in place of any other; none for an empty id.

    Raises:
        PlantError: it could not be planted.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(str(where))
        with connection.makefile("rw") as lines:
            lines.write(f"{fault_id}\n")
            lines.flush()
            said = lines.readline().strip()
    if said != PLANTED:
        raise PlantError(said or f"{fault_id}: the operator ended")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
