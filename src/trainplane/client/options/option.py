"""What every option is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from trainplane.client.errors import UnsupportedError

if TYPE_CHECKING:
    from trainplane.api.tree import Tree

EVERYWHERE: Final = frozenset({"kubernetes", "process", "container"})
CLUSTER: Final = frozenset({"kubernetes"})


class Option:
    """Changes a TrainJob's document. Calling it does so, where the backend can do what it asks for."""

    backends: ClassVar[frozenset[str]] = EVERYWHERE
    """The kinds of backend that it works on."""

    def __call__(self, job_spec: Tree, trainer: Any, backend: str) -> None:
        """Change the document.

        Raises:
            UnsupportedError: this backend cannot do that.
            InvalidError: it does not go with this trainer.
        """
        if backend not in self.backends:
            able = " or ".join(sorted(self.backends))
            raise UnsupportedError(
                f"the option {type(self).__name__} needs a {able} backend, and this one is {backend}: leave it out here"
            )
        self.apply(job_spec, trainer)

    def apply(self, job: Tree, trainer: Any) -> None:
        """Change the document."""
        raise NotImplementedError
