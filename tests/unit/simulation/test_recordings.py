"""Recordings of the simulation have one line per step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.recordings import Observation, read_recording, write_recording

if TYPE_CHECKING:
    from pathlib import Path

NAME = "a worker's Workload is deleted"
CREATED = Observation(["create", {"jobs": [{"name": "node", "pods": 2}]}], refused=False, state={"pods": ["é\n\u2028"]})
SUSPENDED = Observation(["suspend"], refused=True, state={})

WRONG = {
    "a file without lines": ("", 1),
    "an indented object": ('{\n "name": "a script",\n "steps": []\n}\n', 1),
    "an object in one line": ('{"name":"a script","steps":[]}\n', 1),
    "a step without a state": ('"a script"\n{"step":["run"],"refused":false}\n', 2),
    "a step with another field": ('"a script"\n{"step":["run"],"refused":false,"state":{},"other":1}\n', 2),
    "an empty line": ('"a script"\n{"step":["run"],"refused":false,"state":{}}\n\n', 3),
    "a line that is cut": ('"a script"\n{"step":["run"],"refused":false,"state":{}}\n{"step":["ru', 3),
}


def test_recording_written_then_read_is_the_same(tmp_path: Path) -> None:
    path = write_recording(tmp_path / "fleet", NAME, [CREATED, SUSPENDED])
    assert path == tmp_path / "fleet/a-workers-Workload-is-deleted.jsonl"
    assert read_recording(path) == (NAME, [CREATED, SUSPENDED])


def test_recording_has_one_line_per_step(tmp_path: Path) -> None:
    lines = write_recording(tmp_path, NAME, [CREATED, SUSPENDED]).read_text().split("\n")
    assert lines[0] == f'"{NAME}"'
    assert lines[2:] == ['{"step":["suspend"],"refused":true,"state":{}}', ""]


@pytest.mark.parametrize(("text", "line"), WRONG.values(), ids=WRONG)
def test_recording_in_the_wrong_form_is_refused_with_its_line(text: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "a-script.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"a-script.jsonl:{line}: line has the wrong form .*: record the script again"):
        read_recording(path)
