"""Build what is missing of the engines, with progress: `make engines`; with FULL=1 those on demand too.

`LAB_KUBERNETES`, `LAB_JOBSET` and `LAB_KUEUE` choose other releases of these instead of the usual ones.

A build goes to a folder beside its final one and is renamed when it is whole, so a killed build leaves nothing that
looks built. Each build records its seconds in `build.json`, from which `build/reports/lab.json` takes them. Sources are
fetched ahead, in the same order: the network and the compilers do not wait for each other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.engines import ENGINES, OTHERS, Engine, chosen
from lab.errors import BuildError

_HEARTBEAT_SECONDS = 20
"""How often a long build says that it lives: often enough for a reader, rare enough for a log."""
_FETCHES = 2
"""Engines whose sources are fetched at a time: one large module does not hold up all that come after it."""
_NO_DEBUGGER = "-gcflags=all=-dwarf=false"
"""The linker throws away what the compiler wrote for debuggers; not writing it took 67 s instead of 80 for the packages
that client-go's clients need, on an idle machine without caches."""


def build_missing(names: list[str] | None = None) -> dict[str, float]:
    """Build the engines that the cache lacks; return the seconds of each that was built now.

    Without names it is all of them, those on demand only with FULL=1. A name is an engine's, or that of the folder of
    another release.
    """
    usual = [name for name, engine in ENGINES.items() if os.environ.get("FULL") == "1" or not engine.on_demand]
    others = {other.name: other for releases in OTHERS.values() for other in releases.values()}
    wanted = [others.get(name) or chosen(name) for name in names or usual]
    missing = [engine for engine in wanted if not (engine.built() / "build.json").exists()]
    if not missing:
        print(f"engines: all {len(wanted)} are built", flush=True)
        return {}
    seconds: dict[str, float] = {}
    fetchers = ThreadPoolExecutor(_FETCHES, "fetch")
    try:
        fetched = [fetchers.submit(_fetch, engine) for engine in missing]
        for position, (engine, fetch) in enumerate(zip(missing, fetched, strict=True), start=1):
            print(f"engines: [{position}/{len(missing)}] {engine.name}", flush=True)
            seconds |= _build(engine, fetch.result())
    finally:
        fetchers.shutdown(cancel_futures=True)
    return seconds


def build_seconds() -> dict[str, float]:
    """Return what each binary of the cache took to build, downloads apart, as recorded when it was built."""
    seconds: dict[str, float] = {}
    for engine in ENGINES.values():
        record = engine.built() / "build.json"
        if record.exists():
            seconds |= json.loads(record.read_text())["seconds"]
    return seconds


def _fetch(engine: Engine) -> dict[str, float]:
    """Download what an engine is made of; return the seconds of it."""
    if not engine.sources.joinpath("go.sum").stat().st_size:
        return {}
    # With no binary to build, the module alone is wanted and not all that it depends on.
    wanted = [engine.module] if engine.crate or not engine.binaries else []
    label = f"{engine.name}-download"
    return {label: _go(engine, ["mod", "download", *wanted], label)}


def _build(engine: Engine, seconds: dict[str, float]) -> dict[str, float]:
    final = engine.built()
    partial = final.with_name(f"{final.name}.partial.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    if engine.crate:
        seconds |= _build_crate(engine, partial)
    for name, package in engine.binaries.items() if not engine.crate else ():
        flags = ["-trimpath", "-buildvcs=false", "-v", f"-tags={engine.tags}", _NO_DEBUGGER]
        flags += ["-ldflags", f"-s -w {engine.ldflags}".strip()]
        seconds[name] = _go(engine, ["build", *flags, "-o", str(partial / "bin" / name), package], name)
    if engine.module:
        _keep_manifests(engine, partial / "module")
    (partial / "build.json").write_text(json.dumps({"seconds": seconds}, indent=2))
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    return seconds


def _build_crate(engine: Engine, partial: Path) -> dict[str, float]:
    """Build a crate of the module as its own lock file says; return its seconds."""
    # Cargo writes beside what it builds, and Go's cache of modules is read-only.
    crate, target = partial / "crate", partial / "target"
    shutil.copytree(_source(engine) / engine.crate, crate, copy_function=shutil.copyfile)
    for folder in (crate, *filter(Path.is_dir, crate.rglob("*"))):
        folder.chmod(0o755)
    names = [flag for binary in engine.binaries.values() for flag in ("--bin", binary)]
    command = ["cargo", "build", "--release", "--locked", "--target-dir", str(target), *names]
    seconds = _run(engine, command, engine.name, crate, {})
    for name, binary in engine.binaries.items():
        shutil.copy2(target / "release" / binary, partial / "bin" / name)
    for folder in (crate, target):
        shutil.rmtree(folder)
    return {engine.name: seconds}


def _go(engine: Engine, arguments: list[str], label: str) -> float:
    """Run one go command; return its seconds."""
    environment = {"CGO_ENABLED": "0", "GOGC": "400", "GOWORK": "off"}
    return _run(engine, ["go", *arguments], label, engine.sources, environment)


def _run(engine: Engine, command: list[str], label: str, folder: Path, environment: dict[str, str]) -> float:
    """Run one command with a heartbeat that counts the packages done; return its seconds."""
    start = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), daemon=True)
        reader.start()
        while process.poll() is None:
            try:
                process.wait(_HEARTBEAT_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"  {label}: {len(lines)} packages, {time.monotonic() - start:.0f} s", flush=True)
        reader.join()
    elapsed = round(time.monotonic() - start, 1)
    if process.returncode:
        tail = "".join(lines[-15:])
        message = f"{command[0]} {command[1]} of {engine.name} ({label}) ended with {process.returncode}:\n{tail}"
        raise BuildError(message)
    print(f"  {label}: done in {elapsed:.0f} s", flush=True)
    return elapsed


def _keep_manifests(engine: Engine, target: Path) -> None:
    """Copy the module's manifests beside the binaries, so that a pruned module cache does not matter."""
    source = _source(engine)
    for folder in engine.manifests:
        shutil.copytree(source / folder, target / folder)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _source(engine: Engine) -> Path:
    """Return the folder of the engine's module in Go's cache."""
    listed = subprocess.run(
        ["go", "mod", "download", "-json", engine.module],
        cwd=engine.sources,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(listed.stdout)["Dir"])


def main(arguments: list[str]) -> int:
    """Build the named engines, or all that are not on demand."""
    start = time.monotonic()
    try:
        build_missing(arguments or None)
    except BuildError as error:
        print(f"engines: {error}", file=sys.stderr)
        return 1
    print(f"engines: ready in {time.monotonic() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
