from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trainplane.client.backends.local import logs
from trainplane.client.backends.local.logs import LogReader, LogWriter, read_end

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOW = datetime(2026, 11, 15, 5, 0, 0, 123456, tzinfo=UTC)


def test_lines_of_all_steps_stand_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log", lambda: NOW)
    writer.write("node-0", "a", b"one\ntw")
    writer.write("node-1", "b", b"uno\r\n\xff\n")
    writer.write("node-0", "a", b"o\nthree")
    writer.close_stream("node-0", "a")
    writer.close_stream("node-1", "b")
    writer.close()
    reader = LogReader(tmp_path / "log", None)
    lines = list(reader.read())
    assert [str(line) for line in lines] == [
        "[node-0] one", "[node-1] uno", "[node-1] \N{REPLACEMENT CHARACTER}", "[node-0] two", "[node-0] three",
    ]  # fmt: skip
    assert lines[0].time == NOW
    reader.close()


def test_a_reader_goes_on_where_it_was(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / "log", ["node-1"])
    assert list(reader.read()) == []
    writer = LogWriter(tmp_path / "log")
    writer.write("node-0", "a", b"x\n")
    writer.write("node-1", "b", b"one\n\n")
    assert [line.text for line in reader.read()] == ["one", ""]
    assert list(reader.read()) == []
    writer.write("node-1", "b", b"two\n")
    assert [line.text for line in reader.read()] == ["two"]
    writer.close()
    reader.close()


def test_the_last_lines_of_each_step(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log")
    for number in range(5):
        writer.write("node-0", "a", b"a%d\n" % number)
        writer.write("node-1", "b", b"b%d\n" % number)
    reader = LogReader(tmp_path / "log", None)
    assert [line.text for line in reader.read_last(2)] == ["a3", "b3", "a4", "b4"]
    assert list(reader.read()) == []
    writer.close()
    reader.close()


def test_a_line_without_end_does_not_fill_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LONGEST", 4)
    writer = LogWriter(tmp_path / "log")
    writer.write("node-0", "a", b"123456")
    writer.write("node-0", "a", b"7\n")
    writer.close()
    reader = LogReader(tmp_path / "log", None)
    assert [line.text for line in reader.read()] == ["123456", "7"]
    reader.close()


def test_the_end_of_a_step_is_read_without_the_rest_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    assert read_end(path, "node-0", 3) == []
    writer = LogWriter(path)
    for number in range(1000):
        writer.write(f"node-{number % 2}", "s", f"line {number} node-0 x\n".encode())
    writer.close()
    assert read_end(path, "node-1", 2) == ["line 997 node-0 x", "line 999 node-0 x"]
    monkeypatch.setattr(logs, "NEAR", 200)
    near = read_end(path, "node-0", 100)
    assert near[-1] == "line 998 node-0 x"
    assert 1 <= len(near) <= 3
