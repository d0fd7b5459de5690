"""What is to be kept of a training, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trainplane.api.objectname import is_object_name
from trainplane.api.output import OutputUriError, read_output
from trainplane.client.errors import InvalidError
from trainplane.client.types.shown import Shown

WAITING: Final = "Waiting"
"""The TrainJob is not over; checkpoints may be there already."""
SENT: Final = "Sent"
NOT_SENT: Final = "NotSent"


@dataclass(frozen=True)
class Output:
    """Where what is trained goes: all that is written to `/workspace/output` in the first node, as it comes to rest.

    The TrainJob is Complete when it is all there, and fails if it cannot be sent.
    """

    uri: str
    """`s3://bucket/path`, `gs://…`, `az://…`, `hf://owner/name`, or `pvc://claim/path`."""
    secret: str | None = None
    """A Secret of the TrainJob's namespace with the credentials; without it, the pods' own identity counts."""

    def __post_init__(self) -> None:
        try:
            read_output(self.uri)
        except OutputUriError as error:
            raise InvalidError(f"uri of an Output {error}") from error
        if self.secret is not None and not is_object_name(self.secret):
            raise InvalidError(f"secret of an Output must be the name of a Secret, and is {self.secret!r}")


@dataclass(frozen=True)
class JobOutput(Shown):
    """An output of a TrainJob."""

    uri: str
    state: str = WAITING
    """Waiting, Sent or NotSent."""
    files: int | None = None
    """How many there are, once it is sent."""
    bytes: int | None = None
    """How large they are together, once it is sent."""
    digest: str | None = None
    """Of `trainplane-output.json`, the manifest that arrived last: `sha256:…`."""
    message: str = ""
    """Why it was not sent, and what to do."""
