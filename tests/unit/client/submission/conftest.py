"""A laptop with files and a notebook, as where code is shipped."""

from tests.unit.client.code.conftest import laptop, notebook

__all__ = ["laptop", "notebook"]
