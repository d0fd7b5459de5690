"""Code on its way: the command line of every node, and what people should know about it."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainplane.client.code import closure, workspace
from trainplane.client.code.payload import File, pack
from trainplane.client.errors import CodeError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trainplane.client.code.modules import Module
    from trainplane.client.types.trainers import Workspace

ANNOTATION_FUNCTION: Final = "trainplane.dev/function"
"""On a TrainJob: what it runs, as `module:function` or a script's path."""
ANNOTATION_CODE: Final = "trainplane.dev/code"
"""On a TrainJob: SHA-256 of the code that it runs. Two jobs with the same one run the same code."""

_CODE: Final = "code"
_MAIN: Final = "main"
_WORKSPACE: Final = "workspace"
_FALLBACK: Final = "fallback"


@dataclass(frozen=True)
class Setting:
    """What a node needs beside the code."""

    packages: Sequence[str] = ()
    """For pip, before anything starts. An entry that begins with `-` is an option: `-r requirements.txt`."""
    index_urls: Sequence[str] = ()
    """Where pip looks: the first is the index, the others are extra. Empty: as pip is configured in the image."""
    variables: Sequence[str] = ()
    """Names of variables that an MPI launcher must hand on to its ranks."""


@dataclass(frozen=True)
class Shipment:
    """Code as a command line."""

    command: list[str]
    args: list[str]
    annotations: dict[str, str]
    files: dict[str, int]
    """What is shipped: sizes in bytes by path."""


def ship_function(
    func: Callable[..., Any],
    func_args: Mapping[str, Any] | None = None,
    *,
    folder: str | os.PathLike[str] | Workspace | None = None,
    setting: Setting | None = None,
) -> Shipment:
    """Return the command line that calls a function in every process of a job.

    Raises:
        CodeError: it cannot be shipped as it is.
    """
    closed = closure.close(func, func_args)
    files = {f"{_MAIN}/{closed.entry}": File(closed.text.encode())}
    path = [_CODE] if closed.modules else []
    if folder is not None:
        files |= _read_workspace(folder)
        path.append(_WORKSPACE)
    root = workspace.root_of(folder) if folder is not None else None
    for module in closed.modules.values():
        place, entry = _place(module, root)
        files[place] = File(module.file.read_bytes())
        if entry not in path:
            path.append(entry)
    plan = {"entry": f"{_MAIN}/{closed.entry}", "args": [], "path": path, "cwd": _WORKSPACE if root else ""}
    return _ship(files, plan, closed.function, setting or Setting())


def ship_script(
    script: str,
    args: Sequence[str] = (),
    *,
    folder: str | os.PathLike[str] | Workspace = ".",
    setting: Setting | None = None,
) -> Shipment:
    """Return the command line that runs a script of a workspace in every process of a job.

    Raises:
        CodeError: it cannot be shipped as it is.
    """
    root = workspace.root_of(folder)
    files = _read_workspace(folder)
    target = (root / script).resolve()
    place = target.relative_to(root).as_posix() if target.is_relative_to(root) else None
    if place is None or f"{_WORKSPACE}/{place}" not in files:
        why = "stays behind by an ignore file" if target.is_file() and place else f"is no file in {root}"
        raise CodeError(f"script {script!r} {why}: name it relative to the workspace")
    if not all(isinstance(arg, str) for arg in args):
        raise CodeError(f"args of {script} must be texts, as on a command line, and are {list(args)!r}")
    plan = {"entry": f"{_WORKSPACE}/{place}", "args": list(args), "path": [_WORKSPACE], "cwd": _WORKSPACE}
    return _ship(files, plan, place, setting or Setting())


def _read_workspace(folder: str | os.PathLike[str] | Workspace) -> dict[str, File]:
    return {f"{_WORKSPACE}/{path}": file for path, file in workspace.read(folder).items()}


def _place(module: Module, root: Path | None) -> tuple[str, str]:
    """Return where a module's file goes, and from where it is imported there.

    One that lies in the workspace goes to its place in it, so that it finds the files beside it.
    """
    if root and module.root and module.file.is_relative_to(root) and module.root.is_relative_to(root):
        entry = Path(_WORKSPACE, module.root.relative_to(root)).as_posix()
        return f"{_WORKSPACE}/{module.file.relative_to(root).as_posix()}", entry
    return f"{_CODE}/{module.place}", _CODE


def _ship(files: dict[str, File], plan: dict[str, Any], name: str, setting: Setting) -> Shipment:
    plan |= {"packages": list(setting.packages), "pip": _pip_options(setting.index_urls)}
    plan |= {"env": sorted(setting.variables), "fallbacks": {}}
    if any(b"trainplane" in file.content for path, file in files.items() if path.endswith(".py")):
        files = {**files, **_job_stub()}
        plan["fallbacks"] = {"trainplane": _FALLBACK}
    files = {**files, "plan.json": File(json.dumps(plan, indent=1, sort_keys=True).encode())}
    payload = pack(files)
    return Shipment(
        command=["python3", "-c", _boot()],
        args=payload.args,
        annotations={ANNOTATION_FUNCTION: name, ANNOTATION_CODE: payload.digest},
        files={path: len(file.content) for path, file in sorted(files.items())},
    )


def _pip_options(urls: Iterable[str]) -> list[str]:
    first, *others = [*urls, ""]
    options = ["--index-url", first] if first else []
    return options + [word for url in others if url for word in ("--extra-index-url", url)]


@functools.cache
def _job_stub() -> dict[str, File]:
    """Return what `import trainplane` finds in an image that has not got it."""
    here = Path(__file__).parent
    room = here.parents[1]
    sources = {
        "__init__.py": here / "job_stub.py",
        "options.py": here / "job_stub.py",
        "client/__init__.py": here / "job_stub.py",
        "progress.py": room / "progress.py",
        "client/reporting.py": room / "client" / "reporting.py",
        "client/standing.py": room / "client" / "standing.py",
        "api/__init__.py": room / "api" / "__init__.py",
        "api/names.py": room / "api" / "names.py",
    }
    return {f"{_FALLBACK}/trainplane/{place}": File(source.read_bytes()) for place, source in sources.items()}


@functools.cache
def _boot() -> str:
    """Return the node's first program, without the words to our linter: people read it in the TrainJob."""
    return re.sub(r"  # noqa.*", "", Path(__file__).with_name("boot.py").read_text(encoding="utf-8"))
