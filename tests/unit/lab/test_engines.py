from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lab import engines
from lab.engines import ENGINES, Engine, build
from lab.errors import BuildError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return an engine whose sources lie in a folder that the test may change, with a cache of its own."""
    sources = tmp_path / "sources"
    (sources / "hello").mkdir(parents=True)
    (sources / "hello/go.mod").write_text("module example.test/hello\n\ngo 1.21\n")
    (sources / "hello/go.sum").write_text("")
    (sources / "hello/main.go").write_text('package main\n\nfunc main() { println("hello") }\n')
    monkeypatch.setattr(engines, "SOURCES", sources)
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path / "cache"))
    return Engine("hello", {"hello": "."})


def test_every_engine_pins_its_module_with_hashes() -> None:
    for one in ENGINES.values():
        assert (one.sources / "go.mod").exists()
        assert (one.sources / "go.sum").exists()


@pytest.mark.parametrize("file", ["go.mod", "go.sum", "main.go"])
def test_a_change_of_any_source_is_another_build(engine: Engine, file: str) -> None:
    before = engine.key()
    assert engine.key() == before
    path = engine.sources / file
    path.write_text(path.read_text() + "\n")
    assert engine.key() != before


def test_a_change_of_the_linker_flags_is_another_build(engine: Engine) -> None:
    assert replace(engine, ldflags="-X a.b=c").key() != engine.key()


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go on this machine")
def test_a_build_is_kept_and_not_repeated(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ENGINES", {"hello": engine})
    assert list(build.build_missing()) == ["hello"]
    assert (engine.built() / "bin/hello").exists()
    assert build.build_missing() == {}
    assert build.build_seconds()["hello"] > 0


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go on this machine")
@pytest.mark.parametrize(
    ("full", "names", "built"), [("0", None, []), ("1", None, ["hello"]), ("0", ["hello"], ["hello"])]
)
def test_an_engine_on_demand_is_built_when_it_is_named_or_at_full_size(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, full: str, names: list[str] | None, built: list[str]
) -> None:
    monkeypatch.setattr(build, "ENGINES", {"hello": replace(engine, on_demand=True)})
    monkeypatch.setenv("FULL", full)
    assert list(build.build_missing(names)) == built


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go on this machine")
def test_a_failed_build_shows_the_compilers_words_and_keeps_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "ENGINES", {"hello": engine})
    (engine.sources / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(BuildError, match="undefined: nonsense"):
        build.build_missing()
    assert not engine.built().exists()


def test_a_missing_binary_names_the_command_that_builds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    with pytest.raises(BuildError, match="run `make engines`"):
        engines.binary("etcd")
    with pytest.raises(BuildError, match="run `make engines`"):
        engines.manifests("jobset")
    with pytest.raises(BuildError, match="make engines FULL=1"):
        engines.binary("vc-scheduler")
    with pytest.raises(BuildError, match="make engines FULL=1"):
        engines.manifests("scheduler-plugins")
