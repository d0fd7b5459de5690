"""The chart as it is published: with JobSet's own chart inside, for `jobset.install`.

JobSet's chart is a part of its Go module, which the lab has by its hash; it is copied when a chart is packaged, and not
committed. So a checkout's folder installs without it, and says so where it is asked for.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final

import yaml

from deploy.chart import REPOSITORY
from lab.engines import manifests

if TYPE_CHECKING:
    from pathlib import Path

CHART: Final = REPOSITORY / "charts/trainplane"
OUTPUT: Final = REPOSITORY / "build/chart/trainplane"
"""Where `make chart` leaves it."""
_CONDITION: Final = "jobset.install"
_LEFT_OUT: Final = ("tests", "README.md.gotmpl")


def jobset() -> Path:
    """Return the folder of JobSet's chart; a `BuildError` of the lab says how to get it."""
    return manifests("jobset") / "charts/jobset"


def assemble(chart: Path, target: Path, dependency: Path) -> Path:
    """Copy a chart with another one inside, which a value turns on."""
    shutil.copytree(chart, target)
    facts = yaml.safe_load((dependency / "Chart.yaml").read_text())
    shutil.copytree(dependency, target / "charts" / facts["name"], ignore=shutil.ignore_patterns(*_LEFT_OUT))
    entry = {"name": facts["name"], "version": facts["version"], "condition": _CONDITION}
    with (target / "Chart.yaml").open("a") as file:
        file.write(yaml.safe_dump({"dependencies": [entry]}, sort_keys=False))
    return target


def main() -> int:
    """Leave the chart in `build/chart`."""
    shutil.rmtree(OUTPUT.parent, ignore_errors=True)
    sys.stdout.write(f"{assemble(CHART, OUTPUT, jobset()).relative_to(REPOSITORY)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
