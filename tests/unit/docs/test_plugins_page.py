"""docs/plugins.md, followed to the letter: its blocks, put together, are a plugin that its own test accepts."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fenced import blocks
from trainplane.api.runtime import ClusterTrainingRuntime
from trainplane.api.trainjob import TrainJob
from trainplane.render.discovery import GROUP

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "plugins.md"
EXAMPLE = ROOT / "examples" / "plugin"


@pytest.fixture
def package() -> dict[str, Any]:
    (text,) = blocks(PAGE, "toml")
    return tomllib.loads(text)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: dict[str, Any]) -> str:
    """Put the page's module where Python finds it, with the entry point of the page's pyproject.toml."""
    ((name, target),) = package["project"]["entry-points"][GROUP].items()
    module = target.partition(":")[0]
    *parts, _ = blocks(PAGE, "python")
    (tmp_path / f"{module}.py").write_text("\n".join(parts))
    info = tmp_path / f"{module}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package['project']['name']}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {target}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    return str(module)


def test_the_package_is_the_example(package: dict[str, Any]) -> None:
    example = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    assert package["build-system"] == example["build-system"]
    assert package["tool"]["hatch"] == example["tool"]["hatch"]
    assert {key: example["project"][key] for key in package["project"]} == package["project"]


def test_the_blocks_make_a_plugin_that_passes_the_page_s_test(installed: str) -> None:
    scope: dict[str, Any] = {"ClusterTrainingRuntime": ClusterTrainingRuntime, "TrainJob": TrainJob, "yaml": yaml}
    scope |= {"RUNTIME": (EXAMPLE / "runtime.yaml").read_text(), "TRAINJOB": (EXAMPLE / "trainjob.yaml").read_text()}
    exec(blocks(PAGE, "python")[-1], scope)  # noqa: S102 our own page
    tests = [value for name, value in scope.items() if name.startswith("test_")]
    assert len(tests) == 1
    tests[0]()
    assert installed in sys.modules
