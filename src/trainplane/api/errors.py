"""What can go wrong in `api`.

    ApiError                  (a ValueError)
    ├── DecodeError           a document is not what its kind says; the user's or ours, never retryable
    ├── QuantityError         a text is no Kubernetes quantity; the user's, never retryable
    └── ConfigurationError    the operator's configuration file is wrong; the admin's, never retryable

Nothing here talks to a network, so nothing becomes right by trying again: change the document.
"""

from __future__ import annotations


class ApiError(ValueError):
    """A value of our API is wrong; the message names it and says what would be right."""


class DecodeError(ApiError):
    """A document does not have the form of its kind."""

    def __init__(self, path: str, problem: str) -> None:
        """Name the field by its path from the root (`spec.trainer.numNodes`) and say what is wrong with it."""
        super().__init__(f"{path or 'the document'}: {problem}")
        self.path = path
        self.problem = problem


class QuantityError(ApiError):
    """A text is no quantity."""


class ConfigurationError(ApiError):
    """One or more fields of the configuration file are wrong; `problems` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        """Keep every problem, so that an admin corrects the file once."""
        super().__init__("the configuration file is wrong: " + "; ".join(problems))
        self.problems = problems
