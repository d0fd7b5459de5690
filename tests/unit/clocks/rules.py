"""Asserts, limits and loops of tests that depend on how fast the machine is.

- `elapsed`: an assert (or a raise) when a wall clock shows more than something. A busy machine makes it fail. CPU time
  may be judged, and so may a least time: a slow machine only adds to it.
- `limit`: a wait that fails within less than 20 seconds. A wait whose expiry is caught or expected is no such limit.
- `loop`: a loop that looks, sleeps, and fails at a deadline of its own.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from tests.unit.clocks.syntax import Finding, Function, functions, is_wait, last_name, name_of, own, type_of_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LEAST_SECONDS = 20.0
"""The shortest limit of a wait that may fail a test: a busy machine of one core takes this long for anything."""

_CLOCKS = {f"{name}{unit}" for name in ("monotonic", "time", "perf_counter") for unit in ("", "_ns")}
_CLOCK_WORDS = re.compile(r"monotonic|perf_counter|\btime\(|time_ns|\.now\(|utcnow|wait_for")
_WORDS = re.compile(rf"timeout|wait|until|result\(|create_connection|{_CLOCK_WORDS.pattern}")
_SAME_UNIT = {"abs", "float", "int", "max", "median", "mean", "min", "round", "sorted", "sum"}
"""Functions whose result is an elapsed time if an argument is one."""
_ELAPSED = (
    "fails when elapsed wall time is too long, as it is on a busy machine: judge CPU time, a count, or the result; "
    "record seconds with report.figure"
)
_LIMITED = "gives up after {seconds:g} s, which a busy machine can take: allow {least:g} s or more"
_LOOP = (
    "waits in a loop of its own with a deadline: use lab.processes.wait_for, "
    "or tests.integration.kube.support.until in async code"
)
_RUNS = {"run", "call", "check_call", "check_output", "communicate"}
_WAITS = _RUNS | {
    *("result", "exception", "wait", "get", "put", "join", "acquire", "wait_for", "timeout", "wait_for_job_status"),
    *("urlopen", "request", "post", "delete", "patch", "head", "create_connection", "open_connection", "send", "recv"),
    *("HTTPConnection", "HTTPSConnection", "get_server_certificate", "connection", "do_get", "do_put"),
    *("ClientTimeout", "FlightCallOptions", "wait_for_available", "as_completed"),
}
"""Calls whose keyword `timeout` limits a wait."""
_POSITIONS = {"timeout": 0, "result": 0, "wait_for": 1, "until": 1, "wait_until": 1, "create_connection": 1}
"""Which argument is the limit, where people leave out the keyword."""
_OPTION = re.compile(r"--timeout=(\d+(?:\.\d+)?)s")
_EXPIRY = re.compile(r"Time(d)?out|Expired|OSError|URLError|FlightError|ArrowException|^Exception$|Cancelled")
"""Names of errors that a wait raises when it expires, or of what they are a kind of."""


def findings(path: str, source: str) -> Iterator[Finding]:
    """Yield what breaks the rules in one file."""
    if not _WORDS.search(source):
        return
    tree = ast.parse(source)
    constants = _constants(tree)
    has_clock = _CLOCK_WORDS.search(source) is not None
    elapsed = _returning_elapsed(tree) if has_clock else set()
    for name, function in functions(tree):
        nodes = own(function)
        if has_clock:
            yield from _clock_findings(path, name, nodes, elapsed)
        for line, seconds in _limits(function, nodes, constants):
            problem = _LIMITED.format(seconds=seconds, least=LEAST_SECONDS)
            yield Finding("limit", path, name, line, problem)


def _clock_findings(path: str, name: str, nodes: list[ast.AST], elapsed: set[str]) -> Iterator[Finding]:
    values = _elapsed_names(nodes, elapsed)
    loops = [node for node in nodes if isinstance(node, ast.While) and _is_waiting_loop(node, values)]
    inside = {id(node) for loop in loops for node in ast.walk(loop)}
    for loop in loops:
        yield Finding("loop", path, name, loop.lineno, _LOOP)
    for node in nodes:
        if isinstance(node, ast.stmt) and id(node) not in inside and _fails_when_late(node, values):
            yield Finding("elapsed", path, name, node.lineno, _ELAPSED)


# -- elapsed wall time --------------------------------------------------------------------------------------------


class Elapsed:
    """The names of one function that hold a moment of a wall clock, or a time between two."""

    def __init__(self, functions: set[str]) -> None:
        self._functions = functions
        self._names: set[str] = set()

    def note(self, target: ast.expr) -> bool:
        """Add the names of an assignment's target; return whether one is new."""
        if isinstance(target, ast.Tuple):
            return sum(map(self.note, target.elts)) > 0
        name = ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else ""
        if not name or name in self._names:
            return False
        self._names.add(name)
        return True

    def holds(self, node: ast.expr) -> bool:  # noqa: PLR0911 one for each kind of expression
        """Return whether an expression is a moment of a wall clock, or calculated from one."""
        if isinstance(node, ast.BinOp):
            return self.holds(node.left) or self.holds(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.holds(node.operand)
        if isinstance(node, (ast.Subscript, ast.NamedExpr, ast.Starred)):
            return self.holds(node.value)
        if isinstance(node, ast.List):
            return any(map(self.holds, node.elts))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.holds(node.elt)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return ast.unparse(node) in self._names
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Name) and node.func.id in self._functions:
            return True
        return _reads_clock(node) or (name_of(node) in _SAME_UNIT and any(map(self.holds, node.args)))


def _reads_clock(call: ast.Call) -> bool:
    """Return whether a call reads a wall clock: of `time`, of an event loop, or of the calendar."""
    if isinstance(call.func, ast.Name):
        return call.func.id in _CLOCKS
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    if call.func.attr in {"now", "utcnow"}:
        return last_name(owner) == "datetime"
    if call.func.attr == "time" and (last_name(owner) == "loop" or _is_running_loop(owner)):
        return True
    return last_name(owner) == "time" and call.func.attr in _CLOCKS


def _is_running_loop(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and name_of(node) == "get_running_loop"


def _elapsed_names(nodes: Iterable[ast.AST], returning: set[str]) -> Elapsed:
    found = Elapsed(returning)
    assigned = [pair for node in nodes for pair in _assigned(node)]
    while any(found.holds(value) and found.note(target) for target, value in assigned):
        pass
    return found


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the targets of an assignment with their values; appending to a list assigns to it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Call) and name_of(node) == "append" and isinstance(node.func, ast.Attribute):
        yield node.func.value, node.args[0]


def _returning_elapsed(tree: ast.Module) -> set[str]:
    """Return the functions of a file that return an elapsed time, and the lab's `wait_for`, which does too."""
    found = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "lab.processes"
        for alias in node.names
        if alias.name == "wait_for"
    }
    for _, function in functions(tree):
        if isinstance(function, type_of_function):
            nodes = own(function)
            values = _elapsed_names(nodes, found)
            if any(isinstance(node, ast.Return) and node.value and values.holds(node.value) for node in nodes):
                found.add(function.name)
    return found


def _fails_when_late(node: ast.AST, values: Elapsed) -> bool:
    """Return whether a statement fails because a clock shows too much."""
    if isinstance(node, ast.Assert):
        return any(_is_late(one, values, late=False) for one in ast.walk(node.test) if isinstance(one, ast.Compare))
    if isinstance(node, ast.If) and any(map(_fails, node.body)):
        return any(_is_late(one, values, late=True) for one in ast.walk(node.test) if isinstance(one, ast.Compare))
    return False


def _is_late(compare: ast.Compare, values: Elapsed, *, late: bool) -> bool:
    """Return whether a comparison bounds an elapsed time above; with `late`, whether it holds beyond such a bound.

    `took > 1` as an assert is no bound above: a slow machine only adds to it. Nor is `before <= moment <= now()`.
    """
    sides = [compare.left, *compare.comparators]
    if len(sides) > 2 and values.holds(sides[0]) and values.holds(sides[-1]):
        return False
    for left, operator, right in zip(sides, compare.ops, sides[1:], strict=False):
        above, below = (right, left) if isinstance(operator, (ast.Lt, ast.LtE)) else (left, right)
        if isinstance(operator, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) and values.holds(above if late else below):
            return True
    return False


def _fails(node: ast.AST) -> bool:
    return isinstance(node, (ast.Raise, ast.Assert)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and name_of(node.value) == "fail"
    )


# -- loops --------------------------------------------------------------------------------------------------------


def _is_waiting_loop(loop: ast.While, values: Elapsed) -> bool:
    """Return whether a loop sleeps, and fails when a clock shows its deadline."""
    nodes = [loop.test, *own(loop)]
    sleeps = any(isinstance(node, ast.Call) and name_of(node) == "sleep" for node in nodes)
    judged = any(_fails_when_late(node, values) for node in nodes)
    limited = any(
        isinstance(one, ast.Compare) and _is_late(one, values, late=False) for one in ast.walk(loop.test)
    ) and any(map(_fails, loop.orelse))
    return sleeps and (judged or limited)


# -- limits -------------------------------------------------------------------------------------------------------


def _limits(
    function: ast.Module | Function, nodes: list[ast.AST], constants: dict[str, float]
) -> Iterator[tuple[int, float]]:
    """Yield waits that fail within less than the least: where, and after how many seconds."""
    if isinstance(function, type_of_function) and is_wait(function.name):
        for name, default in _defaults(function):
            seconds = _number(default, constants)
            if name in {"seconds", "timeout", "patience"} and seconds is not None and seconds < LEAST_SECONDS:
                yield default.lineno, seconds
    short = [(node, seconds) for node in nodes for seconds in _short_limits(node, constants)]
    expected = _expecting(nodes) if short else set()
    yield from (
        (node.lineno, seconds)
        for node, seconds in short
        if isinstance(node, (ast.expr, ast.stmt)) and id(node) not in expected
    )


def _short_limits(node: ast.AST, constants: dict[str, float]) -> Iterator[float]:
    values: list[float | None] = []
    if isinstance(node, ast.Call):
        values = [_number(value, constants) for value in _limit_values(node)]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (found := _OPTION.match(node.value)):
        values = [float(found[1])]
    yield from (seconds for seconds in values if seconds is not None and 0 < seconds < LEAST_SECONDS)


def _limit_values(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments of a call that limit how long it waits."""
    name = name_of(call)
    if isinstance(call.func, ast.Attribute) and last_name(call.func.value) in {"clock", "mark"}:
        return  # a clock of the test's own; pytest's limit of a whole test
    if ast.unparse(call.func) == "asyncio.wait":
        return  # it returns what is not done, and fails nothing
    position = _POSITIONS.get(name)
    if position is not None and len(call.args) > position:
        yield call.args[position]
    for keyword in call.keywords:
        if (keyword.arg == "timeout" and name in _WAITS) or (keyword.arg in {"seconds", "timeout"} and is_wait(name)):
            yield keyword.value


def _expecting(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the ids of nodes whose expiry is expected: `pytest.raises`, `suppress`, or `except` names its error."""
    found: set[int] = set()
    for node in nodes:
        body: Iterable[ast.AST] = ()
        if isinstance(node, (ast.With, ast.AsyncWith)):
            calls = [one.context_expr for one in node.items if isinstance(one.context_expr, ast.Call)]
            if any(name_of(call) in {"raises", "suppress"} and any(map(_is_expiry, call.args)) for call in calls):
                body = (*node.items, *node.body)
        elif isinstance(node, ast.Try) and any(one.type is None or _is_expiry(one.type) for one in node.handlers):
            body = node.body
        found |= {id(inner) for one in body for inner in ast.walk(one)}
    return found


def _is_expiry(error: ast.expr) -> bool:
    names = error.elts if isinstance(error, ast.Tuple) else [error]
    return any(_EXPIRY.search(last_name(name)) for name in names)


def _defaults(function: Function) -> Iterator[tuple[str, ast.expr]]:
    given = function.args
    ordered = [*given.posonlyargs, *given.args]
    pairs = [*zip(ordered[len(ordered) - len(given.defaults) :], given.defaults, strict=True)]
    for arg, default in (*pairs, *zip(given.kwonlyargs, given.kw_defaults, strict=True)):
        if default is not None:
            yield arg.arg, default


def _constants(tree: ast.Module) -> dict[str, float]:
    """Return the numbers that a module gives names to."""
    found: dict[str, float] = {}
    for target, value in (pair for node in tree.body for pair in _assigned(node)):
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        for name, one in zip(names, values, strict=False):
            number = _number(one, found)
            if isinstance(name, ast.Name) and number is not None:
                found[name.id] = number
    return found


def _number(node: ast.expr, constants: dict[str, float]) -> float | None:
    if isinstance(node, ast.Constant):
        is_number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        return float(node.value) if is_number else None  # type: ignore[arg-type] # a number, as just asked
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult, ast.Div)):
        left, right = _number(node.left, constants), _number(node.right, constants)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        return left + right if isinstance(node.op, ast.Add) else left / right
    return None
