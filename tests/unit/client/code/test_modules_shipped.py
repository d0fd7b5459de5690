"""Functions of modules: the module goes with those of the user's own that it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.client.code.stage import ship
from trainplane.client.code import closure, modules
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop, Node


def shipped(laptop: Laptop, module: str) -> set[str]:
    return {path for path in ship(laptop.function(module)).files if path.startswith("code/")}


def test_a_function_runs_with_its_arguments(laptop: Laptop, node: Node) -> None:
    laptop.write("alone.py", "def train(rate, layers, name='x'):\n    print(rate, layers, name)\n")
    shipment = ship(laptop.function("alone"), {"rate": 0.5, "layers": [1, {"a": None}]})
    assert node.says(shipment) == "0.5 [1, {'a': None}] x\n"
    assert shipment.annotations["trainplane.dev/function"] == "alone:train"


def test_text_arrives_byte_for_byte(laptop: Laptop, node: Node) -> None:
    text = "$HOME `date` $(HOME) $$ \\n ' \" {} %s é \U0001f600"
    laptop.write("text.py", f"TEXT = {text!r}\ndef train(said):\n    print(ascii((TEXT, said)))\n")
    shipment = ship(laptop.function("text"), {"said": text})
    assert node.says(shipment) == ascii((text, text)) + "\n"


def test_nothing_is_left_to_expand(laptop: Laptop) -> None:
    laptop.write("dollars.py", "def train(said):\n    print('$(A)')\n")
    shipment = ship(laptop.function("dollars"), {"said": "$(B)"}, packages=["$(C)"])
    words = [*shipment.command, *shipment.args]
    assert not [word for word in words if "$(" in word or "`" in word.replace(shipment.command[2], "")]


def test_own_modules_go_along_and_no_others(laptop: Laptop, node: Node) -> None:
    laptop.write("pkg/__init__.py", "")
    laptop.write("pkg/deep/__init__.py", "from .inner import WORD")
    laptop.write("pkg/deep/inner.py", "WORD = 'deep'\n")
    laptop.write("pkg/near.py", "from . import far\nfrom .deep import WORD\ndef say(): return far.FAR + WORD\n")
    laptop.write("pkg/far.py", "import json\nFAR = json.dumps('far')\n")
    laptop.write("pkg/unused.py", "")
    laptop.write("late.py", "LATE = 'late'\n")
    laptop.write("space/inside.py", "INSIDE = 'inside'\n")
    laptop.write(
        "pkg/main.py",
        """
        import json
        from pkg.near import say
        from space import inside
        def train():
            import late
            print(say(), late.LATE, inside.INSIDE)
        """,
    )
    assert shipped(laptop, "pkg.main") == {
        f"code/{path}"
        for path in (
            "pkg/__init__.py",
            "pkg/deep/__init__.py",
            "pkg/deep/inner.py",
            "pkg/far.py",
            "pkg/main.py",
            "pkg/near.py",
            "late.py",
            "space/inside.py",
        )
    }
    assert node.says(ship(laptop.function("pkg.main"))) == '"far"deep late inside\n'


def test_finding_modules_runs_none(laptop: Laptop) -> None:
    laptop.write("bomb.py", "raise SystemExit('I ran')\n")
    laptop.write("careful.py", "def train():\n    import bomb\n")
    assert shipped(laptop, "careful") == {"code/bomb.py", "code/careful.py"}
    assert "bomb" not in sys.modules


def test_packages_of_the_image_are_not_shipped(laptop: Laptop) -> None:
    laptop.write("uses.py", "import json, hypothesis, pytest\nfrom trainplane import client\ndef train(): pass\n")
    assert shipped(laptop, "uses") == {"code/uses.py"}
    assert not modules.is_own(Path(pytest.__file__))
    assert modules.find("json") is None
    assert modules.find("no_such_module.at_all") is None


def test_decorated_functions_are_called_by_their_name(laptop: Laptop, node: Node) -> None:
    laptop.write(
        "deco.py", "def loud(f):\n    def inner(**k):\n        print('loud')\n        f(**k)\n    return inner\n"
    )
    laptop.write("decorated.py", "from deco import loud\n@loud\ndef train(n):\n    print(n)\n")
    assert node.says(ship(laptop.function("decorated"), {"n": 3})) == "loud\n3\n"


def test_static_methods_partials_and_coroutines(laptop: Laptop, node: Node) -> None:
    laptop.write(
        "several.py",
        """
        import asyncio, functools
        class Trainer:
            @staticmethod
            def fit(n): print("fit", n)
        async def wait(n):
            await asyncio.sleep(0)
            print("wait", n)
        part = functools.partial(Trainer.fit, n=4)
        """,
    )
    several = laptop.function("several", "Trainer")
    assert node.says(ship(several.fit, {"n": 1})) == "fit 1\n"
    assert node.says(ship(laptop.function("several", "wait"), {"n": 2})) == "wait 2\n"
    assert node.says(ship(laptop.function("several", "part"))) == "fit 4\n"
    assert node.says(ship(laptop.function("several", "part"), {"n": 5})) == "fit 5\n"


def test_spawned_processes_find_the_function(laptop: Laptop, node: Node) -> None:
    laptop.write(
        "spawning.py",
        """
        import multiprocessing
        def work(n): return n * n
        def train():
            with multiprocessing.get_context("spawn").Pool(2) as pool:
                print(pool.map(work, [1, 2, 3]))
        """,
    )
    assert node.says(ship(laptop.function("spawning"))) == "[1, 4, 9]\n"


def test_a_traceback_shows_file_and_line(laptop: Laptop, node: Node) -> None:
    laptop.write("pkg2/__init__.py", "")
    laptop.write("pkg2/fails.py", "import json\n\ndef train():\n    raise RuntimeError('boom')\n")
    done = node.run(ship(laptop.function("pkg2.fails")))
    assert done.returncode == 1
    assert "/code/pkg2/fails.py\", line 4, in train\n    raise RuntimeError('boom')\n" in done.stderr


def test_the_same_code_has_the_same_hash(laptop: Laptop) -> None:
    laptop.write("same.py", "def train(n): pass\n")
    one, two, other = (ship(laptop.function("same"), {"n": n}) for n in (1, 1, 2))
    assert one == two
    assert one.annotations["trainplane.dev/code"] != other.annotations["trainplane.dev/code"]


def test_a_real_script_ships_its_module(laptop: Laptop, node: Node) -> None:
    """`python job.py` in a process of its own: `__main__` is a real one."""
    laptop.write("lib.py", "def train(n):\n    print('lib', n)\n")
    code = Path(closure.__file__).parents[3]
    laptop.write(
        "job.py",
        """
        import json, sys
        from lib import train
        from trainplane.client.code.shipment import ship_function
        def local(n):
            train(n + 1)
        shipments = [ship_function(function, {"n": 1}) for function in (train, local)]
        json.dump([[*shipment.command, *shipment.args] for shipment in shipments], sys.stdout)
        """,
    )
    done = subprocess.run(
        [sys.executable, "job.py"], cwd=laptop.folder, env={"PYTHONPATH": str(code)}, capture_output=True, check=True
    )
    for (_, *words), said in zip(json.loads(done.stdout), ("lib 1\n", "lib 2\n"), strict=True):
        command = [sys.executable, *words]
        ran = subprocess.run(command, env=node.environment, capture_output=True, text=True, check=True)
        assert ran.stdout == said


@pytest.mark.parametrize(
    ("source", "args", "message"),
    [
        ("train = lambda: 1", {}, "func is a lambda, which has no name to be called by: write it with `def`"),
        ("train = print", {}, "func must be a function that is written in Python with `def`"),
        ("train = 3", {}, "func must be a function that is written in Python with `def`, and is 3"),
        ("class A:\n    def m(self): pass\ntrain = A().m", {}, "func must be a function that is written in Python"),
        ("def train(n): pass", {}, r"func_args do not fit train\(n\): missing a required argument: 'n'"),
        ("def train(): pass", {"m": 1}, r"func_args do not fit train\(\): got an unexpected keyword argument 'm'"),
        ("def train(n): pass", {"n": {"x": object()}}, r"func_args\['n'\]\['x'\] of train is of type object: only"),
        ("from functools import partial\ntrain = partial(int, 3)", {}, "with positional arguments: give them by name"),
    ],
)
def test_what_cannot_be_called_is_refused_here(
    laptop: Laptop, source: str, args: dict[str, object], message: str
) -> None:
    laptop.write("wrong.py", source)
    with pytest.raises(CodeError, match=message):
        ship(laptop.function("wrong"), args)


def test_a_module_that_is_no_python_is_named(laptop: Laptop) -> None:
    laptop.write("torn.py", "def (")
    laptop.write("imports_torn.py", "def train():\n    import torn\n")
    with pytest.raises(CodeError, match="module torn belongs to your code and is no valid Python"):
        ship(laptop.function("imports_torn"))
