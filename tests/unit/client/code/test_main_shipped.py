"""Functions of scripts and notebooks, and functions inside functions: their parts go, the rest stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.code.stage import ship
from trainplane.client.code import closure
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop, Node, Notebook

SCRIPT = '''
#!/usr/bin/env python
"""Submits itself."""
from __future__ import annotations

import os, sys
import logging
import xml.etree.ElementTree as tree
import collections.abc
import collections
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
import helper
from helper import double as twice

try:
    import tomllib as toml
except ImportError:
    toml = None

RATE = 0.1
SIZES, NAMES = [1, 2], {"a": ("b",)}
log = logging.getLogger("job")
HERE = Path("data") / "x"
square = lambda n: n * n
Point = collections.namedtuple("Point", "x y")
submitted = open(os.devnull)

class Color(Enum):
    RED = "red"

class Base:
    color = Color.RED

@dataclass
class Net(Base):
    rate: float = RATE
    def size(self): return total(SIZES)

def total(values): return sum(map(square, values))

def unused(): return submitted.read()

def train(epochs, name="net"):
    """Text with $HOME and `ticks`."""
    net = Net()
    point = Point(1, y=twice(epochs))
    print(net, net.size(), net.color, point, NAMES, HERE, log.name, toml.__name__, helper.WORD)
    print(train.__doc__, isinstance([], collections.abc.Sequence), tree.Element("e").tag)
    if name == "fail":
        raise RuntimeError(name)

submitted.close()
RATE = 0.2
'''


def test_a_script_goes_in_parts_on_their_lines(laptop: Laptop, node: Node) -> None:
    laptop.write("helper.py", "WORD = 'helper'\ndef double(n): return 2 * n\n")
    train = laptop.script(SCRIPT)["train"]
    shipment = ship(train, {"epochs": 3})
    assert sorted(shipment.files) == ["code/helper.py", "main/job.py", "plan.json"]
    assert node.says(shipment) == (
        "Net(rate=0.2) 5 Color.RED Point(x=1, y=6) {'a': ('b',)} data/x job tomllib helper\n"
        "Text with $HOME and `ticks`. True e\n"
    )
    text = closure.close(train, {"epochs": 3}).text
    assert "open(" not in text
    assert "unused" not in text
    failed = node.run(ship(train, {"epochs": 3, "name": "fail"}))
    line = SCRIPT.lstrip("\n").splitlines().index("        raise RuntimeError(name)") + 1
    assert f'main/job.py", line {line}, in train\n    raise RuntimeError(name)\n' in failed.stderr


def test_a_notebook_goes_in_parts(notebook: Notebook, laptop: Laptop, node: Node) -> None:
    laptop.write("own.py", "WORD = 'own'\n")
    notebook.run("import math, own\nfrom dataclasses import dataclass\nimport os as system")
    notebook.run("class Shape:\n    sides = 4\n")
    notebook.run("def area(n):\n    return 'old'\n")
    notebook.run(
        """
        @dataclass
        class Square(Shape):
            n: int
            def area(self):
                return area(self.n) * SCALE
        """
    )
    notebook.run("SCALE = 2\nRATES = {'a': [1, None]}")
    notebook.run("def area(n):\n    '''$HOME `x`'''\n    return math.floor(n * n) if n else train\n")
    notebook.run(
        """
        def train(n):
            print(Square(n), Square(n).area(), Shape.sides, own.WORD, RATES, system.sep)
            return 1 / 0
        """
    )
    notebook.run("SCALE = 10")
    done = node.run(ship(notebook["train"], {"n": 3}))
    assert done.stdout == "Square(n=3) 90 4 own {'a': [1, None]} /\n"
    assert 'trainplane_notebook.py"' in done.stderr
    assert "in train\n    return 1 / 0\n" in done.stderr


def test_classes_of_a_notebook_stay_those_of_main(notebook: Notebook, node: Node) -> None:
    notebook.run("import pickle\nclass Net: pass\n")
    notebook.run("def train():\n    print(pickle.loads(pickle.dumps(Net())).__class__, Net.__module__)\n")
    assert node.says(ship(notebook["train"])) == "<class '__main__.Net'> __main__\n"


def test_spawned_processes_find_what_a_notebook_defines(notebook: Notebook, node: Node) -> None:
    notebook.run("import multiprocessing\nFACTOR = 3\ndef work(n): return n * FACTOR")
    notebook.run(
        """
        def train():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]))
        """
    )
    assert node.says(ship(notebook["train"])) == "[3, 6]\n"


def test_a_class_that_came_later_stands_before_its_heirs(notebook: Notebook, node: Node) -> None:
    notebook.run("class Base: word = 'old'")
    notebook.run("class Heir(Base): pass\ndef train(): print(Heir.word)")
    notebook.run("class Base:\n    word = 'new'\nHeir.__bases__ = (Base,)")
    assert node.says(ship(notebook["train"])) == "new\n"


def test_functions_that_call_each_other(notebook: Notebook, node: Node) -> None:
    notebook.run("def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)")
    notebook.run("def train(): print(even(10), odd(10))")
    assert node.says(ship(notebook["train"])) == "True False\n"


def test_decorators_of_all_kinds(notebook: Notebook, node: Node) -> None:
    notebook.run(
        """
        import functools
        def plain(f):
            def inner(*a, **k):
                print("plain")
                return f(*a, **k)
            return inner
        def polite(word):
            def outer(f):
                @functools.wraps(f)
                def inner(*a, **k):
                    print(word)
                    return f(*a, **k)
                return inner
            return outer
        """
    )
    notebook.run("@plain\n@polite('please')\n@functools.lru_cache\ndef helper(n): return n + 1")
    notebook.run("@polite('hello')\n@plain\ndef train(n): print(helper(n))")
    assert node.says(ship(notebook["train"], {"n": 1})) == "hello\nplain\nplain\nplease\n2\n"


def test_a_variable_set_by_the_function_begins_as_it_is_now(notebook: Notebook, node: Node) -> None:
    notebook.run("steps = 0\nfor i in range(7): steps += 1")
    notebook.run("def train():\n    global steps\n    steps += 1\n    print(steps, i)")
    assert node.says(ship(notebook["train"])) == "8 6\n"


NESTED = """
import functools, json
WORD = "a global"
class Live:
    word = "live"
live = Live()

def make(scale):
    names = {"a": [1, 2]}
    class Box:
        def __init__(self, n):
            self.n = n
    def helper(n):
        return n * scale
    def train(n):
        text = \"\"\"
  less indented $HOME\"\"\"
        print(helper(n), names, json.dumps(text), WORD, Box(n).n, functools.reduce(max, [1, 2]))
        LIVE
    return train
"""


def test_a_function_inside_another_takes_its_variables_along(laptop: Laptop, node: Node) -> None:
    laptop.write("nested.py", NESTED.replace("LIVE", ""))
    shipment = ship(laptop.function("nested", "make")(5), {"n": 2})
    assert sorted(shipment.files) == ["main/nested.py", "plan.json"]
    assert node.says(shipment) == "10 {'a': [1, 2]} \"\\n  less indented $HOME\" a global 2 2\n"


def test_what_its_module_alone_can_make_is_imported_from_there(laptop: Laptop, node: Node) -> None:
    laptop.write("nested.py", NESTED.replace("LIVE", "print(live.word)"))
    shipment = ship(laptop.function("nested", "make")(5), {"n": 2})
    assert sorted(shipment.files) == ["code/nested.py", "main/trainplane_entry.py", "plan.json"]
    assert node.says(shipment).endswith("live\n")


def test_a_function_inside_a_function_of_a_notebook(notebook: Notebook, node: Node) -> None:
    notebook.run("import math\nBASE = 10")
    notebook.run(
        """
        def make(scale):
            words = ["a"]
            def helper(n): return n * scale + BASE
            if scale:
                def train(n):
                    print(helper(n), words, math.pi > 3)
                return train
        train = make(2)
        """
    )
    assert node.says(ship(notebook["train"], {"n": 1})) == "12 ['a'] True\n"


class Frame:
    def __eq__(self, other: object) -> bool:
        raise TypeError("compared")

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("value = open('/dev/null')", "uses the variable value, a _io.TextIOWrapper that lives in this process"),
        ("value = Frame()", r"uses the variable value, a tests\S+Frame that lives in this process and cannot be sent"),
        ("value = [1, Frame()]", "uses the variable value, a list that lives in this process"),
        ("value = iter([])", "make it inside the function, or pass what it is made of in func_args"),
    ],
)
def test_live_objects_are_named(notebook: Notebook, cell: str, message: str) -> None:
    notebook.namespace["Frame"] = Frame
    notebook.run(cell)
    notebook.run("def train():\n    return value")
    with pytest.raises(CodeError, match=message):
        ship(notebook["train"])
    notebook.namespace["value"].close() if hasattr(notebook["value"], "close") else None


def test_attributes_are_no_variables(notebook: Notebook, node: Node) -> None:
    notebook.run("value = iter([])\nimport types")
    notebook.run("def train():\n    value = types.SimpleNamespace(value=1)\n    print(value.value)")
    assert node.says(ship(notebook["train"])) == "1\n"


def test_functions_that_a_function_made_are_made_again(notebook: Notebook, node: Node) -> None:
    notebook.run(
        """
        def make(n):
            def count():
                nonlocal n
                n += 1
                return n
            return count
        one, two = make(1), make(20)
        def train(): print(one(), one(), two())
        """
    )
    assert node.says(ship(notebook["train"])) == "2 3 21\n"


def test_two_things_of_one_name_are_refused(notebook: Notebook) -> None:
    notebook.run(
        """
        def outer():
            def make(n):
                def helper(): return n
                return helper
            one, two = make(1), make(2)
            def train(): print(one(), two())
            return train
        """
    )
    with pytest.raises(CodeError, match="two different things are called n where your function looks: rename one"):
        ship(notebook["outer"]())


def test_nonlocal_cannot_stand_alone(notebook: Notebook) -> None:
    notebook.run(
        """
        def make():
            n = 0
            def train():
                nonlocal n
                n += 1
            return train
        """
    )
    with pytest.raises(CodeError, match=r"`def train\(\):` cannot stand alone \(.*nonlocal.*\): move it to the top"):
        ship(notebook["make"]())


def test_what_decorates_a_function_inside_another_must_be_known(notebook: Notebook) -> None:
    notebook.run(
        """
        def outer():
            def loud(f): return f
            @loud
            def train(): pass
            return train
        """
    )
    with pytest.raises(CodeError, match="`@loud` is defined inside another function and uses loud, which is not known"):
        ship(notebook["outer"]())


def test_a_function_inside_another_may_call_itself(notebook: Notebook, node: Node) -> None:
    notebook.run(
        """
        def outer():
            def faculty(n): return n * faculty(n - 1) if n else 1
            def train():
                print(faculty(5))
            return train
        """
    )
    assert node.says(ship(notebook["outer"]())) == "120\n"


def test_source_that_is_nowhere_is_said_so() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("def train(): pass", "<string>", "exec"), namespace)  # noqa: S102 as eval does
    with pytest.raises(CodeError, match="the source of train is not known here: define it in a file or in a notebook"):
        ship(namespace["train"])


def test_what_is_only_done_when_run_stays(laptop: Laptop, node: Node) -> None:
    script = """
    import sys
    def train(n): print(n, flag)
    if __name__ == "__main__":
        flag = True
        handle = sys.stdin
    """
    assert node.says(ship(laptop.script(script)["train"], {"n": 1})) == "1 True\n"


def test_a_script_run_with_m_keeps_its_relative_imports(laptop: Laptop, node: Node) -> None:
    laptop.write("pack/__init__.py", "")
    laptop.write("pack/near.py", "WORD = 'near'\n")
    file = laptop.write(
        "pack/job.py", "from . import near\nfrom .near import WORD\ndef train(): print(near.WORD, WORD)\n"
    )
    import pack.near  # type: ignore[import-not-found] # noqa: F401, PLC0415 the package is made just now

    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(file), "__package__": "pack"}
    exec(compile(file.read_text(), str(file), "exec"), namespace)  # noqa: S102 as `python -m` does
    assert node.says(ship(namespace["train"])) == "near near\n"


IPYTHON = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in (
    "import math\\nfrom dataclasses import dataclass\\nRATE = 3",
    "@dataclass\\nclass Net:\\n    rate: int = RATE\\n",
    "%time offset = 1",
    "def helper(n):\\n    return math.floor(n) + offset",
    "def train(n):\\n    print(Net(), helper(n), '$HOME `x`')",
    "from trainplane.client.code.shipment import ship_function\\nshipment = ship_function(train, {'n': 2.5})",
):
    shell.run_cell(cell, store_history=True).raise_error()
shipment = shell.user_ns["shipment"]
sys.stdout.write("\\n" + json.dumps([*shipment.command, *shipment.args]))
"""


def test_a_real_ipython(node: Node, tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    code = Path(closure.__file__).parents[3]
    env = {**node.environment, "PYTHONPATH": str(code), "IPYTHONDIR": str(tmp_path / "ipython")}
    done = subprocess.run([sys.executable, "-c", IPYTHON], env=env, capture_output=True, text=True, check=True)
    _, *words = json.loads(done.stdout.splitlines()[-1])
    ran = subprocess.run([sys.executable, *words], env=node.environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "Net(rate=3) 3 $HOME `x`\n"
