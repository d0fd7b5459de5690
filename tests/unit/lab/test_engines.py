from __future__ import annotations

import shutil
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lab import engines
from lab.engines import ENGINES, OTHERS, Engine, align, build, chosen, release
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


def only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engines, build):
        monkeypatch.setattr(module, "ENGINES", {engine.name: engine})


def others() -> list[Engine]:
    return [other for releases in OTHERS.values() for other in releases.values()]


def test_every_engine_pins_its_module_with_hashes() -> None:
    for one in (*ENGINES.values(), *others()):
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
    only(engine, monkeypatch)
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
    only(replace(engine, on_demand=True), monkeypatch)
    monkeypatch.setenv("FULL", full)
    assert list(build.build_missing(names)) == built


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go on this machine")
def test_a_failed_build_shows_the_compilers_words_and_keeps_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(engine, monkeypatch)
    (engine.sources / "main.go").write_text("package main\n\nfunc main() { nonsense() }\n")
    with pytest.raises(BuildError, match="undefined: nonsense"):
        build.build_missing()
    assert not engine.built().exists()


def test_sources_are_fetched_while_another_engine_is_built_and_one_that_fails_is_told(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched, first, second = threading.Event(), replace(engine, name="first"), replace(engine, name="second")
    for module in (engines, build):
        monkeypatch.setattr(module, "ENGINES", {"first": first, "second": second})
    for one in (first, second):
        shutil.copytree(engine.sources, one.sources)

    def fetch(one: Engine) -> dict[str, float]:
        if one is second:
            fetched.set()
            raise BuildError("no such module")
        return {}

    monkeypatch.setattr(build, "_fetch", fetch)
    built: list[bool] = []

    def note(*_: object) -> dict[str, float]:
        built.append(fetched.wait(60))
        return {}

    monkeypatch.setattr(build, "_build", note)
    with pytest.raises(BuildError, match="no such module"):
        build.build_missing()
    assert built == [True]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust on this machine")
def test_a_crate_of_a_module_is_built_as_its_lock_file_says(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "module"
    (module / "crate").mkdir(parents=True)
    (module / "crate/main.rs").write_text("fn main() {}\n")
    package = '[package]\nname = "small"\nversion = "0.1.0"\n\n[[bin]]\nname = "head"\npath = "main.rs"\n'
    (module / "crate/Cargo.toml").write_text(package)
    monkeypatch.setattr(build, "_source", lambda _: module)
    rust = replace(engine, binaries={"small-head": "head"}, crate="crate")
    only(rust, monkeypatch)
    with pytest.raises(BuildError, match="cannot create the lock file"):
        build.build_missing()
    (module / "crate/Cargo.lock").write_text('version = 4\n\n[[package]]\nname = "small"\nversion = "0.1.0"\n')
    assert list(build.build_missing()) == [rust.name]
    assert sorted(path.name for path in rust.built().rglob("*")) == ["bin", "build.json", "small-head"]


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


def test_another_release_is_used_where_it_is_chosen_and_the_usual_one_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    for name, word in (("kubernetes", "1.36"), ("kueue", "0.19.0")):
        monkeypatch.delenv(f"LAB_{name.upper()}", raising=False)
        assert (release(name), chosen(name)) == (word, ENGINES[name])
        monkeypatch.setenv(f"LAB_{name.upper()}", word)
        assert chosen(name) is ENGINES[name]
    monkeypatch.setenv("LAB_KUBERNETES", "1.31")
    assert chosen("kubernetes") is OTHERS["kubernetes"]["1.31"]
    assert chosen("kueue") is ENGINES["kueue"]
    assert chosen("jobset") is ENGINES["jobset"]
    with pytest.raises(BuildError, match=r"run `make engines LAB_KUBERNETES=1\.31`"):
        engines.binary("kubelet")
    with pytest.raises(BuildError, match=r"run `make engines`"):
        engines.manifests("kueue")


def test_a_release_that_the_lab_has_not_is_refused_with_those_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KUBERNETES", "1.30")
    with pytest.raises(BuildError, match=r"LAB_KUBERNETES=1\.30: .* choose one of 1\.36, 1\.31, 1\.37\."):
        chosen("kubernetes")


def test_other_releases_are_built_when_they_are_chosen_or_named_and_not_at_full_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRAINPLANE_LAB_CACHE", str(tmp_path))
    asked: list[str] = []

    def note(engine: Engine, _: dict[str, float]) -> dict[str, float]:
        asked.append(engine.name)
        return {}

    monkeypatch.setattr(build, "_fetch", lambda _: {})
    monkeypatch.setattr(build, "_build", note)
    monkeypatch.setenv("FULL", "1")
    build.build_missing()
    assert asked == list(ENGINES)
    asked.clear()
    monkeypatch.setenv("LAB_KUEUE", "0.14.0")
    build.build_missing()
    assert set(asked) == ENGINES.keys() - {"kueue"} | {"kueue-v0.14.0"}
    asked.clear()
    build.build_missing(["kubernetes-v1.31", "kueue"])
    assert asked == ["kubernetes-v1.31", "kueue-v0.14.0"]


def test_no_two_releases_share_a_folder_or_a_build() -> None:
    assert len({one.name for one in others()} | ENGINES.keys()) == len(others()) + len(ENGINES)
    assert len({one.key() for one in others()}) == len(others())


def test_engines_that_share_libraries_compile_each_once() -> None:
    """A machine without caches compiled Kubernetes' client libraries five times: see `lab.engines.align`."""
    assert not [wanted for wanted in align.apart().values() if wanted], "run python -m lab.engines.align"
