"""What `trainplane run` is given to run: a script, a function of a module, or a TrainJob in a file."""

from __future__ import annotations

import ast
import os
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from trainplane.api import tree as trees
from trainplane.cli.errors import CommandError
from trainplane.cli.files import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trainplane.api.tree import Tree
    from trainplane.cli.connection import Connection

Kind: TypeAlias = Literal["script", "function", "document"]
_FUNCTION: Final = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")
_DOCUMENTS: Final = (".yaml", ".yml", ".json")


def kind_of(source: str) -> Kind:
    """Return what a source is, by how it is written: `train.py`, `module:function`, `job.yaml` or -."""
    if source == "-" or source.endswith(_DOCUMENTS):
        return "document"
    return "function" if _FUNCTION.fullmatch(source) else "script"


def find_script(source: str, workspace: str | None) -> tuple[str, Path]:
    """Return a script's path in the folder that is shipped with it, and that folder.

    The folder is what `workspace` says, else where the command was given, else, for a script that lies elsewhere, the
    script's own.

    Raises:
        CommandError: there is no such file, or it is not in the workspace.
    """
    script = Path(source).resolve()
    if not script.is_file():
        raise CommandError(
            f"SOURCE: there is no file {source}", "give a script, MODULE:FUNCTION, or a YAML file with a TrainJob"
        )
    here = Path.cwd().resolve()
    folder = Path(workspace).resolve() if workspace else here if script.is_relative_to(here) else script.parent
    if not script.is_relative_to(folder):
        raise CommandError(f"SOURCE: {source} is not in the workspace {folder}", "only that folder is shipped")
    return script.relative_to(folder).as_posix(), folder


def load_function(source: str) -> Callable[..., Any]:
    """Import a function by `module:function`, as a script in this folder would.

    Raises:
        CommandError: there is no such module or function, or the module fails as it is imported.
    """
    told = _FUNCTION.fullmatch(source)
    module, name = (told["module"], told["name"]) if told else (source, "")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name, None)
    except Exception as error:
        raise CommandError(f"SOURCE: {module} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise CommandError(f"SOURCE: module {module} has no function {name}")
    return found  # type: ignore[no-any-return] # what the user wrote


def read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Return keyword arguments of a function: `epochs=3` is a number, `name=fit` a text.

    Raises:
        CommandError: a word is no NAME=VALUE.
    """
    found = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name.isidentifier():
            raise CommandError(f"ARGS: {word!r} is no NAME=VALUE, which a function takes", "write such as epochs=3")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found


def read_env(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return variables from `NAME=VALUE`; a `NAME` alone has the value that it has here.

    Raises:
        CommandError: one has no name, or no value here.
    """
    found = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not name or not (separator or name in environ):
            raise CommandError(f"--env: {word!r} is no NAME=VALUE, and no variable of this name is set here")
        found[name] = value if separator else environ[name]
    return found


def read_document(source: str) -> Tree:
    """Return the one TrainJob of a file, or with - of standard input.

    Raises:
        CommandError: the file cannot be read, or has anything but one TrainJob.
    """
    found = read_documents(source)
    if len(found) != 1 or not isinstance(found[0], dict) or found[0].get("kind") != "TrainJob":
        kinds = ", ".join(str(one.get("kind")) if isinstance(one, dict) else "no object" for one in found[:5])
        raise CommandError(
            f"{source} must have one TrainJob, and has {kinds or 'nothing'}",
            "apply what else there is with kubectl",
        )
    return found[0]


def in_its_namespace(document: Tree, connection: Connection, source: str) -> Connection:
    """Return the connection to the namespace that a document names, where the command line names none.

    Raises:
        CommandError: they name two.
    """
    own = trees.text(document, "metadata", "namespace")
    if own is None or connection.local or connection.containers:
        return connection
    if connection.namespace not in {None, own}:
        raise CommandError(f"--namespace is {connection.namespace}, and metadata.namespace of {source} {own}")
    return replace(connection, namespace=own)


def read_documents(source: str) -> list[Any]:
    """Return the documents of a YAML or JSON file, or with - of standard input; it may be anybody's.

    Raises:
        CommandError: it cannot be read.
    """
    from trainplane.lint.yaml_lines import UnreadableError, read  # noqa: PLC0415 heavy

    try:
        return [one.tree for one in read(read_text(source))]
    except (OSError, UnicodeDecodeError, UnreadableError) as error:
        raise CommandError(f"cannot read {source}: {error}") from error
