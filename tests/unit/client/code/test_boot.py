"""The node's first program, run as a node runs it."""

from __future__ import annotations

import ast
import base64
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.client.code.stage import Node, ship
from trainplane import progress
from trainplane.api import names
from trainplane.client import reporting
from trainplane.client.code import boot, job_stub
from trainplane.client.code.shipment import Setting, ship_script

if TYPE_CHECKING:
    from tests.unit.client.code.stage import Laptop
    from trainplane.client.code.shipment import Shipment

PROGRAM = Path(boot.__file__).read_text()
TORCH = """
import os, runpy, sys
print("torchrun", os.environ["PET_NNODES"], sys.argv[2:])
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
MPIRUN = """
import os, subprocess, sys
words, forwarded = sys.argv[1:], []
print("mpirun", words[: words.index("-c") - 1], flush=True)
while words[0].startswith("-"):
    option, value, *words = words
    forwarded += [value] if option == "-x" else []
env = {name: os.environ[name] for name in ["PATH", "TMPDIR", *forwarded]}
ranks = [subprocess.Popen(words, env=dict(env, OMPI_COMM_WORLD_RANK=str(rank))) for rank in range(3)]
sys.exit(max(rank.wait() for rank in ranks))
"""


@pytest.fixture
def shipment(laptop: Laptop) -> Shipment:
    laptop.write(
        "lib.py",
        """
        import os, sys
        def train(n):
            # One write: several ranks share the output.
            sys.stdout.write(f"trained {n} {os.environ.get('OMPI_COMM_WORLD_RANK')}\\n")
            sys.stdout.flush()
        """,
    )
    return ship(laptop.function("lib"), {"n": 1}, variables=["MINE", "UNSET"])


def test_it_is_python_3_8_with_nothing_to_expand() -> None:
    tree = ast.parse(PROGRAM, feature_version=(3, 8))
    imported = {alias.name for entry in ast.walk(tree) if isinstance(entry, ast.Import) for alias in entry.names}
    assert imported <= sys.stdlib_module_names | {"importlib.util"}
    assert "$(" not in PROGRAM
    assert len(PROGRAM) < 96 * 1024


def test_the_systems_own_python_runs_it(shipment: Shipment, node: Node) -> None:
    node.python = "/usr/bin/python3"
    assert node.says(shipment) == "trained 1 None\n"


def test_torch_starts_by_its_launcher(shipment: Shipment, node: Node) -> None:
    node.package("torch/distributed/run.py", TORCH)
    node.env["PET_NNODES"] = "2"
    assert node.says(shipment) == "torchrun 2 []\ntrained 1 None\n"


def test_paddle_starts_by_its_launcher(shipment: Shipment, node: Node) -> None:
    node.package("paddle/distributed/launch/__main__.py", TORCH.replace("PET_NNODES", "PADDLE_MASTER"))
    node.env["PADDLE_MASTER"] = "there:1"
    assert node.says(shipment) == "torchrun there:1 []\ntrained 1 None\n"


def test_torch_that_is_not_there_is_said(shipment: Shipment, node: Node) -> None:
    node.env["PET_NNODES"] = "2"
    done = node.run(shipment)
    assert done.returncode == 1
    assert done.stderr == (
        "trainplane: the runtime starts torch, which is not installed here: install it, or choose another runtime\n"
    )


@pytest.mark.parametrize("variable", boot.OPENMPI)
def test_openmpi_brings_the_code_to_every_rank(shipment: Shipment, node: Node, variable: str) -> None:
    node.program("mpirun", MPIRUN)
    node.env |= {variable: "/etc/mpi/hostfile", "MINE": "1"}
    first, *others = node.says(shipment).splitlines()
    assert first == "mpirun ['-x', 'MINE']"
    assert sorted(others) == [f"trained 1 {rank}" for rank in range(3)]


@pytest.mark.parametrize("variable", boot.HYDRA)
def test_hydra_hands_all_variables_on_itself(shipment: Shipment, node: Node, variable: str) -> None:
    node.program("mpirun", MPIRUN)
    node.env |= {variable: "/etc/mpi/hostfile", "MINE": "1"}
    assert node.says(shipment).splitlines()[0] == "mpirun []"


def test_ranks_that_fail_fail_the_launcher(laptop: Laptop, node: Node) -> None:
    laptop.write("fails.py", "import os\ndef train():\n    raise SystemExit(int(os.environ['OMPI_COMM_WORLD_RANK']))\n")
    node.program("mpirun", MPIRUN)
    node.env[boot.OPENMPI[0]] = "hosts"
    assert node.run(ship(laptop.function("fails"))).returncode == 2


def test_mpirun_that_is_not_there_is_said(shipment: Shipment, node: Node) -> None:
    node.env |= {boot.OPENMPI[0]: "hosts", "PATH": "/nowhere"}
    assert "starts mpirun, which is not installed here" in node.run(shipment).stderr


def test_processes_of_one_node_may_unpack_at_once(laptop: Laptop, node: Node) -> None:
    laptop.write("big.py", f"TEXT = {'x' * 100!r}\n" + "\n".join(f"N{n} = {n}" for n in range(3000)))
    laptop.write("racing.py", "import big\ndef train():\n    print(big.N2999)\n")
    words = node.words(ship(laptop.function("racing")))
    racing = [subprocess.Popen(words, env=node.environment, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert [process.communicate()[0] for process in racing] == ["2999\n"] * 6
    (home,) = (node.folder / "tmp").iterdir()
    assert len(list(home.iterdir())) == 1


def test_a_folder_that_somebody_else_prepared_is_not_used(shipment: Shipment, node: Node) -> None:
    trap = node.folder / "trap"
    trap.mkdir()
    temporary = Path(node.environment["TMPDIR"])
    (temporary / f"trainplane-{os.getuid()}").symlink_to(trap)
    assert node.says(shipment) == "trained 1 None\n"
    assert not list(trap.iterdir())


def test_neither_home_nor_working_directory_need_be_writable(shipment: Shipment, node: Node) -> None:
    node.env["HOME"] = "/nonexistent"
    assert node.says(shipment, cwd=Path("/proc")) == "trained 1 None\n"


def test_without_a_temporary_folder_the_next_best_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shared memory, then the home directory: the first that can be written."""
    usable, make = str(tmp_path), Path.mkdir

    def mkdir(path: Path, mode: int, *, exist_ok: bool) -> None:
        if not str(path).startswith(usable):
            raise PermissionError
        make(path, mode, exist_ok=exist_ok)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setenv("HOME", usable)
    assert boot.find_home() == tmp_path / f"trainplane-{os.getuid()}"


def test_no_folder_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any, **__: Any) -> Any:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", nowhere)
    with pytest.raises(SystemExit, match="no folder of this container can be written: mount an emptyDir at /tmp"):
        boot.find_home()


def test_output_comes_at_once_and_variables_of_the_user_stay(laptop: Laptop, node: Node) -> None:
    laptop.write(
        "looks.py",
        "import os\ndef train():\n    print(os.environ['PYTHONUNBUFFERED'], os.environ['PYTHONPATH'].split(':')[-1])\n",
    )
    node.env |= {"PYTHONPATH": "/mine", "PYTHONUNBUFFERED": "yes"}
    assert node.says(ship(laptop.function("looks"))) == "yes /mine\n"


def wheel(folder: Path, name: str, version: str, text: str) -> Path:
    """Write a wheel by hand: pip needs no network for it."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", text)
        info = f"{name}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\n{name}-tool = {name}:tool\n")
        archive.writestr(f"{info}/RECORD", "")
    return file


def test_packages_are_installed_once_over_those_of_the_image(laptop: Laptop, node: Node) -> None:
    wheels = laptop.folder / "work" / "wheels"
    wheels.mkdir(parents=True)
    wheel(wheels, "extra", "2.0", "VERSION = '2.0'\ndef tool(): print('tool', VERSION)\n")
    laptop.write(
        "work/train.py",
        """
        import subprocess, sys, extra
        print(extra.VERSION, sys.argv[1:], flush=True)
        subprocess.run(["extra-tool"])
        """,
    )
    (laptop.folder / "work" / "requirements.txt").write_text("extra>=2\n")
    setting = Setting(packages=["--no-index --find-links wheels", "-r requirements.txt"])
    shipment = ship_script("train.py", ["$HOME", "`x`", "a b"], folder=laptop.folder / "work", setting=setting)
    assert node.says(shipment) == "2.0 ['$HOME', '`x`', 'a b']\ntool 2.0\n"
    again = node.run(shipment)
    assert again.returncode == 0
    assert "installing" not in again.stderr


@pytest.mark.parametrize(
    ("package", "kept"), [("extra", True), ("-r requirements.txt", False), (".", False), ("x @ file:///x", False)]
)
def test_packages_can_outlive_the_node_but_not_what_lies_beside_its_code(
    package: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []

    def build(overlay: Path, *_: object) -> None:
        overlay.mkdir()
        built.append(overlay)

    monkeypatch.setattr(boot, "build", build)
    monkeypatch.setenv("TRAINPLANE_PACKAGES", str(tmp_path / "kept"))
    for node in ("first", "second"):
        (tmp_path / node).mkdir()
        for _ in range(2):
            boot.install([package], [], tmp_path / node, tmp_path / node / "workspace")
    assert [overlay.parent.name for overlay in built] == (["kept"] if kept else ["first", "second"])
    assert not kept or (tmp_path / "kept").stat().st_mode & 0o077 == 0


def test_packages_that_the_image_has_are_not_installed_again(laptop: Laptop, node: Node) -> None:
    laptop.write("lib2.py", "import pip\ndef train():\n    print(pip.__file__.split('site-packages')[0])\n")
    said = node.says(ship(laptop.function("lib2"), packages=["--no-index", "pip"]))
    assert "trainplane" not in said


def test_a_package_that_cannot_be_installed_is_said(laptop: Laptop, node: Node) -> None:
    laptop.write("lib3.py", "def train(): print('never')\n")
    shipment = ship(
        laptop.function("lib3"), packages=["no-such-package", "--no-index"], index_urls=["https://a", "https://b"]
    )
    done = node.run(shipment)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "trainplane: installing no-such-package, --no-index\n" in done.stderr
    assert done.stderr.endswith(
        "trainplane: pip could not install --index-url https://a --extra-index-url https://b no-such-package "
        "--no-index: its own words stand above\n"
    )


def test_the_plan_is_readable(shipment: Shipment, node: Node) -> None:
    node.says(shipment)
    (plan,) = (node.folder / "tmp").glob("*/*/plan.json")
    assert json.loads(plan.read_text()) == {
        "args": [],
        "cwd": "",
        "entry": "main/trainplane_entry.py",
        "env": ["MINE", "UNSET"],
        "fallbacks": {},
        "packages": [],
        "path": ["code"],
        "pip": [],
    }
    assert base64.b64decode("".join(shipment.args[2:]))


INSIDE = """
from trainplane import CustomTrainer, TrainerClient, DATASET_PATH, progress, update_trainjob_status
from trainplane.options import Name

def train(use):
    print(DATASET_PATH, update_trainjob_status(5), update_trainjob_status.__module__, progress.report(1, of=2))
    if use:
        TrainerClient().train(trainer=CustomTrainer(train), options=[Name("x")])
"""


def test_code_that_imports_trainplane_runs_where_there_is_none(laptop: Laptop, node: Node) -> None:
    node.python = "/usr/bin/python3"
    laptop.write("submits.py", INSIDE)
    train = laptop.function("submits")
    assert node.says(ship(train, {"use": False})) == "/workspace/dataset False trainplane.client.reporting False\n"
    done = node.run(ship(train, {"use": True}))
    assert "RuntimeError: trainplane.TrainerClient is not available inside this job: the image has not" in done.stderr


def test_trainplane_of_the_image_comes_first(laptop: Laptop, node: Node) -> None:
    laptop.write("looks2.py", "def train():\n    import trainplane\n    print(trainplane.WORD)\n")
    node.package("trainplane/__init__.py", "WORD = 'of the image'\n")
    assert node.says(ship(laptop.function("looks2"))) == "of the image\n"


def test_what_is_shipped_of_ours_is_python_3_8(laptop: Laptop) -> None:
    laptop.write("uses2.py", "def train():\n    import trainplane\n")
    shipment = ship(laptop.function("uses2"))
    ours = [path.removeprefix("fallback/") for path in shipment.files if path.startswith("fallback/")]
    assert len(ours) == 8
    for file in (job_stub, progress, reporting, names):
        ast.parse(Path(str(file.__file__)).read_text(), feature_version=(3, 8))
    assert job_stub.DATASET_PATH == names.PATH_DATASET
    assert job_stub.MODEL_PATH == names.PATH_MODEL


def test_code_without_trainplane_brings_none(shipment: Shipment) -> None:
    assert not [path for path in shipment.files if path.startswith("fallback/")]


def test_a_hostfile_alone_means_openmpi(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in boot.OPENMPI + boot.HYDRA:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(boot, "HOSTFILE", str(tmp_path / "hostfile"))
    monkeypatch.setattr(boot.shutil, "which", lambda name: f"/bin/{name}")  # type: ignore[attr-defined] # its own import
    monkeypatch.setenv("MINE", "1")
    assert not boot.is_mpi_launcher()
    (tmp_path / "hostfile").touch()
    assert boot.is_mpi_launcher()
    assert boot.mpirun(["MINE", "UNSET"]) == ["/bin/mpirun", "--hostfile", str(tmp_path / "hostfile"), "-x", "MINE"]
