"""What rendering is told of shipped runtimes is what is shipped."""

from __future__ import annotations

import pytest
import yaml

from lab.paths import REPOSITORY
from trainplane.api import tree as trees
from trainplane.legacy.migrate.shipped import FRAMEWORKS, shipped_name, shipped_runtime

PLACE = ("spec", "template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0)


@pytest.mark.parametrize("framework", sorted(set(FRAMEWORKS.values()) - {"mpi"}))
def test_each_is_as_its_file_but_for_the_image(framework: str) -> None:
    shipped = yaml.safe_load((REPOSITORY / "runtimes" / f"{shipped_name(framework)}.yaml").read_text())
    assert trees.get(shipped, *PLACE, "image")
    assert shipped_runtime(framework) == trees.drop(shipped, *PLACE, "image")
