"""A function that another one made runs on the nodes, from a script as from a notebook (hub-and-sdk 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.client.code.conftest import laptop, node, notebook
from tests.unit.client.code.stage import ship

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop, Node, Notebook

pytestmark = pytest.mark.finding("hub-and-sdk", 9, "closures in scripts broke on every node")
__all__ = ["laptop", "node", "notebook"]

MAKE = """
def make_train(rate):
    def train():
        print("rate", rate)
    return train

"""
SCRIPTS = {
    "under the main guard": MAKE + 'if __name__ == "__main__":\n    fit = make_train(0.3)\n',
    "at the top": MAKE + "fit = make_train(0.3)\n",
    "before another of its name": "train = 1\n" + MAKE + 'if __name__ == "__main__":\n    fit = make_train(0.3)\n',
    "with a helper between": MAKE
    + "def half(x): return x / 2\n\nif __name__ == '__main__':\n    base = half(0.6)\n    fit = make_train(base)\n",
    "that decorates another": """
def make(word):
    def wrap(function):
        def inner():
            print(word, 0.3)
        return inner
    return wrap

loud = make("rate")

@loud
def fit():
    pass
""",
    "with a comment around": "# first\n\n"
    + MAKE
    + "# then\n\nif __name__ == '__main__':\n\n    fit = make_train(0.3)\n",
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_closure_of_a_script_runs(laptop: Laptop, node: Node, script: str) -> None:
    assert node.says(ship(laptop.script(script)["fit"])) == "rate 0.3\n"


def test_a_closure_of_a_notebook_runs(notebook: Notebook, node: Node) -> None:
    notebook.run(MAKE + "fit = make_train(0.3)")
    assert node.says(ship(notebook["fit"])) == "rate 0.3\n"
