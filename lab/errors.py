"""What can go wrong in the lab.

    LabError
    ├── BuildError      an engine or image could not be built; the tail of its log is in the message
    ├── StartError      an engine did not become ready; the tail of its log is in the message
    ├── CommandError    a command that the lab ran (kubectl, ip, ctr) failed
    └── NoClusterError  no cluster of that name is up

All of them are the machine's or ours, none is retryable: the lab never retries a failure away.
"""

from __future__ import annotations


class LabError(Exception):
    """Something in the lab failed; the message says which engine and shows its last words."""


class BuildError(LabError):
    """An engine or image could not be built."""


class StartError(LabError):
    """An engine was started and did not become ready."""


class CommandError(LabError):
    """A command ended with an error."""

    def __init__(self, command: list[str], code: int, output: str) -> None:
        """Keep the exit code and output for callers that expect a certain refusal."""
        super().__init__(f"`{' '.join(command)}` ended with {code}:\n{output.strip()}")
        self.code = code
        self.output = output


class NoClusterError(LabError):
    """The named cluster is not up."""
