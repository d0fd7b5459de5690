"""What can go wrong with a release: it cannot be made, or what was made cannot be believed."""


class ReleaseError(Exception):
    """Something that a maintainer must mend; says all that was found."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class MissingToolError(ReleaseError):
    """A part cannot be made here, because something that makes it is not here."""


class UntrustedError(ReleaseError):
    """A folder of released files is not what its key signed."""
