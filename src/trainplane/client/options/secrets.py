"""What looks like a secret and is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainplane.client.errors import InvalidError
from trainplane.client.options.option import Option

if TYPE_CHECKING:
    from trainplane.api.tree import Tree


@dataclass
class NotSecret(Option):
    """A value that may stand in the open although it looks like a token, a key or a password, for this call alone."""

    value: str = field(repr=False)
    """The value, whole: what is found inside it is allowed."""

    def __post_init__(self) -> None:
        given: Any = self.value
        if not isinstance(given, str) or not given:
            raise InvalidError("value of NotSecret must be the text that is no secret, whole")

    def apply(self, job: Tree, trainer: Any) -> None:
        """Change nothing: the document is searched without the value."""
