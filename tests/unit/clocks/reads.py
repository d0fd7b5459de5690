"""Asserts in live suites that read a cluster once, when another controller may not have written yet.

A call reads a cluster if it is one of these, as the suites' annotations tell its receiver's type:

- `kubectl` with a verb that reads (`get`, `logs`, ...), or a request `GET` on a connection;
- a method of Trainplane's clients that reads (`READING_METHODS`);
- a function of the suites or of the lab that calls one of these and does not wait.

A function that waits, and everything inside of what is passed to it, is not a read: it looks again until it is so.
What a create or a patch returns is no read either.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tests.unit.clocks.syntax import Finding, Function, functions, is_wait, last_name, name_of, own, type_of_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

RULE = "read"
LIVE = (
    *("integration", "e2e", "fleet", "sdk", "cli", "explain", "progress", "legacy", "install", "security", "cache"),
    *("seeds", "initializers", "disruptions", "conformance", "lab"),
)
"""Folders of `tests` whose suites run on real engines."""
READING_VERBS = frozenset({"get", "logs", "describe", "top", "events"})
_CLIENT = frozenset({"get", "list_all", "list", "logs"})
_JOBS = frozenset({"get_job", "list_jobs", "get_job_logs", "get_job_events", "list_events", "collect"})
READING_METHODS = {
    "Client": _CLIENT,
    "TrainerClient": _JOBS,
    "AsyncTrainerClient": _JOBS,
    "KubernetesBackend": _JOBS,
}
"""Methods of Trainplane's own clients that read a cluster, by class."""
_READING_NAMES = frozenset().union(*READING_METHODS.values())
_PROBLEM = (
    "assert on one read of a cluster: another controller may not have written yet. Wait for it with the suite's "
    "`wait(...)` or with `lab.processes.wait_for`, and assert on what can no longer change"
)

Owner = tuple[str, str]
"""A class: module and name."""


@dataclass
class Class:
    """What annotations say of a class: the types of its attributes, and its methods."""

    module: Module
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    bases: list[ast.expr] = field(default_factory=list)


class Module:
    """The definitions and imports of one file."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        self.name = name
        self.path = path
        self.tree = tree
        self.functions = {node.name: node for node in tree.body if isinstance(node, type_of_function)}
        self.classes = {node.name: self._class(node) for node in tree.body if isinstance(node, ast.ClassDef)}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = (node.module, alias.name)

    def _class(self, node: ast.ClassDef) -> Class:
        found = Class(self, bases=node.bases)
        for child in node.body:
            if isinstance(child, type_of_function):
                found.methods[child.name] = child
            elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                found.attributes[child.target.id] = child.annotation
        for method in found.methods.values():
            hints = {arg.arg: arg.annotation for arg in method.args.args}
            for part in own(method):
                if isinstance(part, ast.AnnAssign):
                    target: ast.expr = part.target
                    hint: ast.expr | None = part.annotation
                elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
                    target, hint = part.targets[0], hints.get(part.value.id)
                else:
                    continue
                if isinstance(target, ast.Attribute) and last_name(target.value) == "self" and hint is not None:
                    found.attributes.setdefault(target.attr, hint)
        return found


class Project:
    """All modules that live suites are made of, and which of their functions read a cluster."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        classes = (known for module in self.modules.values() for known in module.classes.values())
        self.method_names = {name for known in classes for name in known.methods}

    @classmethod
    def load(cls, repository: Path) -> Project:
        """Read the live suites, what they share, and the lab."""
        folders = [repository / "lab", *(repository / "tests" / name for name in LIVE)]
        files = sorted({*(file for folder in folders for file in folder.rglob("*.py"))})
        return cls(module_of(file.relative_to(repository), file.read_text()) for file in files)

    def findings(self) -> Iterator[Finding]:
        """Yield asserts of live suites that read a cluster outside of a wait."""
        for module in self.modules.values():
            if module.path.startswith("tests/"):
                yield from self._findings(module)

    def _findings(self, module: Module) -> Iterator[Finding]:
        callbacks = _callbacks(module.tree)
        for name, function in functions(module.tree):
            if name.rpartition(".")[2] in callbacks:
                continue
            asserts = [node for node in own(function) if isinstance(node, ast.Assert)]
            if not asserts:
                continue
            scope = Scope(self, module, function, _class_of(module, name))
            for node in asserts:
                if any(map(scope.reads, _calls(node.test))):
                    yield Finding(RULE, module.path, name, node.lineno, _PROBLEM)

    # -- types ------------------------------------------------------------------------------------------------------

    def resolve(self, module: Module, name: str) -> tuple[Module | None, str, str]:
        """Follow imports to the module that defines a name: that module if it is loaded, its name, and the name."""
        for _ in range(5):
            if name in module.classes or name in module.functions or name not in module.imports:
                return module, module.name, name
            source, name = module.imports[name]
            if source not in self.modules:
                return None, source, name
            module = self.modules[source]
        return module, module.name, name

    def owner(self, module: Module, annotation: ast.expr | None) -> Owner | None:
        """Return the class that an annotation names; None for unions of several, builtins, and no annotation."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        if isinstance(annotation, ast.Subscript):  # Iterator[Cluster] of a fixture, Awaitable[Client]
            wrapped = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
            generic = {"Iterator", "AsyncIterator", "Generator", "AsyncGenerator", "Awaitable", "Annotated"}
            return self.owner(module, wrapped) if last_name(annotation.value) in generic else None
        if isinstance(annotation, ast.BinOp):  # Team | None
            sides = [self.owner(module, side) for side in (annotation.left, annotation.right)]
            known = [side for side in sides if side is not None]
            return known[0] if len(known) == 1 else None
        if not isinstance(annotation, ast.Name):
            return None
        found, where, name = self.resolve(module, annotation.id)
        if found is not None and name not in found.classes:
            return None
        return where, name

    def class_of(self, owner: Owner | None) -> Class | None:
        """Return what is known of a class."""
        return None if owner is None or owner[0] not in self.modules else self.modules[owner[0]].classes.get(owner[1])

    def method(self, owner: Owner | None, name: str) -> tuple[Module, Owner, Function] | None:
        """Return a method of a class or of its bases, with the class that defines it."""
        if owner is None or (known := self.class_of(owner)) is None:
            return None
        if name in known.methods:
            return known.module, owner, known.methods[name]
        for base in known.bases:
            if found := self.method(self.owner(known.module, base), name):
                return found
        return None

    def attribute(self, owner: Owner | None, name: str) -> Owner | None:
        """Return the class of an attribute or a property."""
        if (known := self.class_of(owner)) is None:
            return None
        if name in known.attributes:
            return self.owner(known.module, known.attributes[name])
        if found := self.method(owner, name):
            return self.owner(found[0], found[2].returns)
        return next(
            (one for base in known.bases if (one := self.attribute(self.owner(known.module, base), name))), None
        )

    # -- reads ------------------------------------------------------------------------------------------------------

    @cached_property
    def readers(self) -> set[int]:
        """Return the ids of all functions that read a cluster and return what they read."""
        found: set[int] = set()
        called: dict[int, set[int]] = {}
        for module in self.modules.values():
            for name, function in functions(module.tree):
                if not isinstance(function, type_of_function) or _returns_nothing(function) or is_wait(function.name):
                    continue
                calls = list(_calls(function))
                if any(is_wait(name_of(call)) for call in calls):
                    continue
                scope = Scope(self, module, function, _class_of(module, name))
                if any(map(scope.asks, calls)):
                    found.add(id(function))
                else:
                    called[id(function)] = {id(one) for one in map(scope.callee, calls) if one is not None}
        while more := {caller for caller, callees in called.items() if caller not in found and callees & found}:
            found |= more
        return found


class Scope:
    """The names of one function, with their classes."""

    def __init__(self, project: Project, module: Module, function: ast.Module | Function, inside: str) -> None:
        self._project = project
        self._module = module
        self._inside = inside
        self._types: dict[str, Owner | None] = {}
        if isinstance(function, type_of_function):
            arguments = function.args
            for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self._types[arg.arg] = project.owner(module, arg.annotation)
        if inside:
            self._types["self"] = (module.name, inside)
        self._unseen = [] if isinstance(function, ast.Module) else own(function)

    def _note_all(self) -> None:
        """Learn the types of local names, when the first one is asked for."""
        nodes, self._unseen = self._unseen, []
        for node in nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._types[node.targets[0].id] = self.type(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self._types[node.target.id] = self._project.owner(self._module, node.annotation)
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            self._types[node.optional_vars.id] = self.type(node.context_expr)

    def type(self, node: ast.expr) -> Owner | None:  # noqa: PLR0911 one for each kind of expression
        """Return the class of what an expression is, as far as annotations tell."""
        project = self._project
        if isinstance(node, ast.Await):
            return self.type(node.value)
        if isinstance(node, ast.Name):
            self._note_all()
            return self._types.get(node.id)
        if isinstance(node, ast.Attribute):
            return project.attribute(self.type(node.value), node.attr)
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name) and node.func.id not in self._types:
            found, where, name = project.resolve(self._module, node.func.id)
            if found is not None and name in found.functions:
                return project.owner(found, found.functions[name].returns)
            return where, name
        owner = self.type(node.func.value) if isinstance(node.func, ast.Attribute) else self.type(node.func)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else "__call__"
        method = project.method(owner, name)
        return project.owner(method[0], method[2].returns) if method else None

    def reads(self, call: ast.Call) -> bool:
        """Return whether a call reads a cluster."""
        if is_wait(name_of(call)):
            return False
        return self.asks(call) or id(self.callee(call)) in self._project.readers

    def asks(self, call: ast.Call) -> bool:
        """Return whether a call itself is a request that reads."""
        name = name_of(call)
        words = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if name == "kubectl":
            return next((word for word in words if not word.startswith("-")), "") in READING_VERBS
        if name in {"send", "_send"}:
            return words[:1] == ["GET"]
        if not isinstance(call.func, ast.Attribute) or name not in _READING_NAMES:
            return False
        owner = self.type(call.func.value)
        return owner is not None and name in READING_METHODS.get(owner[1], ())

    def callee(self, call: ast.Call) -> Function | None:
        """Return the function or the method of the project that is called."""
        if isinstance(call.func, ast.Name):
            found, _, name = self._project.resolve(self._module, call.func.id)
            return found.functions.get(name) if found is not None else None
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in self._project.method_names:
            return None
        method = self._project.method(self.type(call.func.value), call.func.attr)
        return method[2] if method else None


def module_of(path: Path, source: str) -> Module:
    """Parse one file; `path` is relative to the repository."""
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    return Module(name, path.as_posix(), ast.parse(source))


def _class_of(module: Module, qualified: str) -> str:
    first = qualified.partition(".")[0]
    return first if first in module.classes else ""


def _returns_nothing(function: Function) -> bool:
    return isinstance(function.returns, ast.Constant) and function.returns.value is None


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Yield calls below a node, except those inside of other functions and of what is passed to a wait."""
    if isinstance(node, ast.Call):
        yield node
        if is_wait(name_of(node)):
            return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*type_of_function, ast.Lambda)):
            yield from _calls(child)


def _callbacks(tree: ast.Module) -> set[str]:
    """Return the names of functions that are passed to a wait: they are called until they hold."""
    waits = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_wait(name_of(node)))
    return {last_name(arg) for call in waits for arg in (*call.args, *(one.value for one in call.keywords))} - {""}
