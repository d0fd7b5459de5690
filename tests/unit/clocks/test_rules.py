"""The rules for clocks, limits and loops find each form, and stay silent on what is allowed."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from tests.unit.clocks import rules
from tests.unit.clocks.syntax import Finding
from tests.unit.clocks.test_clocks import differences, listed

PREFIX = "import asyncio, contextlib, subprocess, time\nfrom lab.processes import wait_for\n"


def found(body: str, *, before: str = "") -> list[str]:
    source = f"{PREFIX}{dedent(before)}\nasync def test():\n{indent(dedent(body), '    ')}"
    return [finding.rule for finding in rules.findings("tests/x.py", source)]


@pytest.mark.parametrize(
    "body",
    [
        "start = time.monotonic()\nassert time.monotonic() - start < 5",
        "start = time.perf_counter()\nwork()\ntook = time.perf_counter() - start\nassert took <= LIMIT, took",
        "start, other = time.time(), 1\nassert 5 > time.time() - start",
        "took = []\nstart = time.monotonic_ns()\ntook.append(time.monotonic_ns() - start)\nassert max(took) < 5",
        "loop = asyncio.get_running_loop()\nstart = loop.time()\nassert loop.time() - start < 1",
        "took = wait_for('x', ready, seconds=60)\nassert took < 5",
        "start = datetime.now(UTC)\nassert datetime.now(UTC) - start < timedelta(seconds=5)",
        "start = time.monotonic()\nif time.monotonic() - start > 5:\n    raise AssertionError",
        "start = time.monotonic()\nif time.monotonic() - start > 5:\n    pytest.fail('late')",
        "self.start = time.monotonic()\nassert time.monotonic() - self.start < 5",
    ],
)
def test_elapsed_wall_time_in_an_assert_is_found(body: str) -> None:
    assert found(body) == ["elapsed"]


def test_elapsed_wall_time_from_a_helper_of_the_file_is_found() -> None:
    helper = "def seconds(run):\n    start = time.perf_counter()\n    run()\n    return time.perf_counter() - start\n"
    assert found("took = seconds(run)\nassert took < 5", before=helper) == ["elapsed"]


@pytest.mark.parametrize(
    "body",
    [
        "start = time.process_time()\nassert time.process_time() - start < 5",
        "start = time.monotonic()\nassert time.monotonic() - start > 5, 'a slow machine only adds to it'",
        "before = time.time()\nassert before <= stamp <= time.time()",
        "report.figure('x_s', time.monotonic() - start)",
        "assert clock.monotonic() < 5, 'virtual time'",
        "start = time.monotonic()\nassert make(created=time.time()) == 3",
    ],
)
def test_other_uses_of_clocks_are_allowed(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "async with asyncio.timeout(5):\n    await work()",
        "await asyncio.wait_for(work(), 5)",
        "await asyncio.wait_for(work(), timeout=5)",
        "subprocess.run(['x'], timeout=5)",
        "future.result(timeout=1)",
        "future.result(1)",
        "event.wait(timeout=0.5)",
        "queue.get(timeout=1)",
        "thread.join(timeout=10)",
        "connection = http.client.HTTPConnection('x', timeout=10)",
        "wait_for('x', ready, seconds=5)",
        "team.wait('x', ready, seconds=19.9)",
        "until(ready, 5)",
        "subprocess.run(['x'], timeout=SHORT * 2)",
        "cluster.kubectl('wait', '--timeout=5s', 'pod/x')",
        "with pytest.raises(ValueError):\n    subprocess.run(['x'], timeout=5)",
    ],
)
def test_short_limit_is_found(body: str) -> None:
    assert found(body, before="SHORT = 5") == ["limit"]


def test_short_default_of_a_waiting_function_is_found() -> None:
    assert found("pass", before="def wait_ready(seconds: float = 5): ...") == ["limit"]
    assert found("pass", before="def wait_ready(seconds: float = 60): ...") == []


@pytest.mark.parametrize(
    "body",
    [
        "async with asyncio.timeout(20):\n    await work()",
        "subprocess.run(['x'], timeout=PATIENCE)",
        "with pytest.raises(TimeoutError):\n    await asyncio.wait_for(work(), 0.1)",
        "with contextlib.suppress(subprocess.TimeoutExpired):\n    process.wait(timeout=1)",
        "try:\n    urlopen('x', timeout=5)\nexcept OSError:\n    pass",
        "await asyncio.wait({task}, timeout=0.3)",
        "stop.wait(0.1)",
        "stage.until_log(3)",
        "show(seconds=5)",
        "client = Client(timeout=5)",
        "async with clock.timeout(5):\n    pass",
    ],
)
def test_long_or_expected_limit_is_allowed(body: str) -> None:
    assert found(body, before="PATIENCE = 60.0") == []


@pytest.mark.parametrize(
    "body",
    [
        "end = time.monotonic() + 60\nwhile not ready():\n    assert time.monotonic() < end\n    time.sleep(0.1)",
        "end = time.time() + 60\nwhile True:\n    if time.time() > end:\n        raise X\n    await asyncio.sleep(1)",
        "end = time.time() + 60\nwhile time.time() < end:\n    time.sleep(1)\nelse:\n    pytest.fail('late')",
    ],
)
def test_waiting_loop_with_a_deadline_is_found(body: str) -> None:
    assert found(body) == ["loop"]


@pytest.mark.parametrize(
    "body",
    [
        "async with asyncio.timeout(60):\n    while not ready():\n        await asyncio.sleep(0.01)",
        "end = time.monotonic() + 5\nwhile time.monotonic() < end:\n    load()\n    time.sleep(0.1)",
        "while not ready():\n    time.sleep(0.1)",
    ],
)
def test_other_loops_are_allowed(body: str) -> None:
    assert found(body) == []


def test_finding_names_place_problem_and_fix() -> None:
    source = "import asyncio\nclass TestX:\n    async def test_y(self):\n        await asyncio.wait_for(work(), 5)\n"
    (finding,) = rules.findings("tests/x.py", source)
    assert finding.key == "limit tests/x.py::TestX.test_y"
    assert str(finding) == ("tests/x.py:4: gives up after 5 s, which a busy machine can take: allow 20 s or more")


def test_list_of_exceptions_only_shrinks() -> None:
    places = [Finding("read", "tests/x.py", "test_y", line, "a problem") for line in (3, 9)]
    key = "read tests/x.py::test_y"
    assert list(differences(places, {key: 2})) == []
    assert list(differences(places, {key: 1})) == ["tests/x.py:3: a problem", "tests/x.py:9: a problem"]
    assert list(differences(places[:1], {key: 2})) == [f"exceptions.txt: {key} lists 2, found 1: set its count to 1"]
    assert list(differences([], {key: 2})) == [f"exceptions.txt: {key} lists 2, found 0: delete the line"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("limit tests/x.py::test_y 1", "add `  # reason`"),
        ("speed tests/x.py::test_y 1", "unknown rule speed"),
        ("limit tests/x.py 1  # x", "not `rule path::function count  # reason`"),
        ("read tests/x.py::y 1\nread tests/x.py::y 1", "is listed twice"),
    ],
)
def test_line_of_the_list_that_is_wrong_is_refused(line: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        listed(line)


def test_list_of_exceptions_gives_counts_by_place() -> None:
    assert listed("# a comment\n\nlimit tests/x.py::y 3  # why\nread tests/x.py::z 1\n") == {
        "limit tests/x.py::y": 3,
        "read tests/x.py::z": 1,
    }
