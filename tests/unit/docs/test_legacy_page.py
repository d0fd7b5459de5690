"""docs/legacy.md has a row for every field of every older kind, names every setting, and its commands exist."""

from __future__ import annotations

import re

import msgspec
import pytest

from lab.paths import REPOSITORY
from trainplane.api.configuration import Legacy
from trainplane.api.legacy.job import ReplicaSpec, RunPolicy, SchedulingPolicy
from trainplane.api.legacy.paddlejob import PaddleJobSpec
from trainplane.cli import main
from trainplane.legacy.migrate.convert import TYPES
from trainplane.resources import LEGACY_JOBS, OLDER_CLUSTER_TRAINING_RUNTIMES, OLDER_TRAIN_JOBS, OLDER_TRAINING_RUNTIMES

PAGE = (REPOSITORY / "docs/legacy.md").read_text()
ROWS = {
    name
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for name in re.findall(r"`([^`]+)`", line.split("|")[1])
}


def fields(kind: type) -> list[str]:
    """Return the fields of a type and of the objects within it, as rows name them."""
    found = []
    for one in msgspec.structs.fields(kind):
        described = msgspec.inspect.type_info(one.type)
        parts = described.types if isinstance(described, msgspec.inspect.UnionType) else (described,)
        below = [part.cls for part in parts if isinstance(part, msgspec.inspect.StructType)]
        if below:
            found += [f"{one.encode_name}.{name}" for name in fields(below[0])]
        else:
            found.append(one.encode_name)
    return found


@pytest.mark.parametrize("kind", [RunPolicy, ReplicaSpec])
def test_what_all_kinds_share_has_its_rows(kind: type) -> None:
    assert [name for name in fields(kind) if name not in ROWS] == []
    assert SchedulingPolicy.__struct_encode_fields__


@pytest.mark.parametrize("kind", [kind for found in TYPES.values() for kind in found.values()])
def test_each_kind_has_its_rows(kind: type) -> None:
    spec = next(one.type for one in msgspec.structs.fields(kind) if one.encode_name == "spec")
    wanted = [name for name in fields(spec) if not name.startswith("runPolicy.")]
    if spec is PaddleJobSpec:  # its policy is one row
        wanted = [name.removeprefix("elasticPolicy.") for name in wanted]
    assert wanted
    assert [name for name in wanted if name not in ROWS] == []


def test_each_setting_is_named() -> None:
    assert [name for name in Legacy.__struct_encode_fields__ if name not in ROWS] == []


def test_each_resource_is_named() -> None:
    older = (OLDER_TRAIN_JOBS, OLDER_TRAINING_RUNTIMES, OLDER_CLUSTER_TRAINING_RUNTIMES)
    assert [one.plural for one in (*LEGACY_JOBS.values(), *older) if one.plural not in PAGE] == []


def test_its_commands_are_taken(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^\$ trainplane (.*?)(?: +#.*)?$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        words = [word for word in command.split() if word != "-A"] + ["--kubeconfig", f"{tmp_path}/none"]
        assert main(words) == 2
        assert "usage" not in capsys.readouterr().err
