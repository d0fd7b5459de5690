"""`python images/build.py --base IMAGE [--program NAME]`: build an image of ours, the same from the same sources.

    wheel of the checkout ─┐
    requirements, hashes ──┴─► packages/ ─► Containerfile on BASE ─► trainplane.tar: what a node or a registry takes

There are three: `operator`, which is the hub's too; `initializers` and `cache`, which run in user pods. A program is a
list of requirements/ and a last stage of the Containerfile, both of its name. The build itself asks no network:
packages are fetched before, by the hashes of that list. Times are those of the last commit (SOURCE_DATE_EPOCH), so two
builds of one commit have one digest.
"""  # noqa: INP001 a command beside the files it builds, no package

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCES = REPOSITORY / "images/trainplane"
PROGRAMS = ("operator", "initializers", "cache")
PYTHON = "3.13"
"""The Python that the base has, for which packages are fetched."""
PLATFORM = "x86_64-manylinux_2_28"


def build(base: str, output: Path, engine: list[str], program: str, name: str) -> dict[str, object]:
    """Build the image of a program into `output`/trainplane.tar; return its name, digest and size.

    Raises:
        subprocess.CalledProcessError: a step failed; it has said why on stderr.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or _run("git", "log", "-1", "--format=%ct").strip()
    context = output / "context"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir(parents=True)
    _install(context / "packages", program, _wheel(output / "dist", epoch))
    shutil.copy(SOURCES / "rootfs.py", context)
    flags = [
        f"--build-arg=BASE={base}",
        f"--target={program}",
        f"--timestamp={epoch}",
        "--no-cache",
        "--isolation=chroot",
    ]
    # One layer of sorted files, and nothing of where and when: the digest is that of what is in it.
    layers = ["--squash", "--identity-label=false", "--format=oci"]
    file = f"--file={SOURCES / 'Containerfile'}"
    _run(*engine, "build", "--quiet", *flags, *layers, file, f"--tag={name}", str(context))
    archive = output / "trainplane.tar"
    archive.unlink(missing_ok=True)
    _run(*engine, "save", "--quiet", "--format=oci-archive", f"--output={archive}", name)
    (facts,) = json.loads(_run(*engine, "image", "inspect", name))
    shown = {"name": name, "digest": _digest(archive), "megabytes": round(facts["Size"] / 1e6, 1)}
    (output / "image.json").write_text(json.dumps(shown, indent=2) + "\n")
    return shown


def _digest(archive: Path) -> str:
    """Return the digest of the manifest: what a registry calls the image."""
    with tarfile.open(archive) as content:
        index = content.extractfile("index.json")
        return str(json.load(index)["manifests"][0]["digest"]) if index else ""


def _wheel(folder: Path, epoch: str) -> Path:
    """Build the wheel that is published, too."""
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    _run(sys.executable, "-m", "hatchling", "build", "--target=wheel", f"--directory={folder}", environment=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _install(target: Path, program: str, wheel: Path) -> None:
    """Unpack what a program needs, by its hashes, and the wheel, for the base's Python and not for this one."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--no-cache", "--link-mode=copy"]
    uv += [f"--python-version={PYTHON}", f"--python-platform={PLATFORM}", "--only-binary=:all:", f"--target={target}"]
    _run(*uv, "--require-hashes", f"--requirement={REPOSITORY / f'requirements/{program}.txt'}")
    _run(*uv, str(wheel))
    # Where the wheel lay on this machine is nobody's business, and another on the next.
    for name in ("direct_url.json", "uv_cache.json"):
        for trace in target.glob(f"*.dist-info/{name}"):
            trace.unlink()
            record = trace.with_name("RECORD")
            lines = record.read_text().splitlines(keepends=True)
            record.write_text("".join(line for line in lines if f"/{name}," not in line))
    (target / ".lock").unlink(missing_ok=True)


def _run(*command: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Build and tell; 1 if a step failed."""
    parser = argparse.ArgumentParser("python images/build.py", description="Build an image of ours.")
    parser.add_argument("--base", required=True, help=f"an image with Python {PYTHON}, best by digest")
    parser.add_argument("--program", choices=PROGRAMS, default=PROGRAMS[0], help="what it is the image of")
    parser.add_argument("--output", type=Path, help="where the archive goes: build/image/PROGRAM")
    parser.add_argument("--name", help="the image's name and tag: trainplane/PROGRAM:latest")
    parser.add_argument("--engine", default="podman", help="podman or buildah, with options of its own if need be")
    options = parser.parse_args(arguments)
    program = options.program
    output = options.output or REPOSITORY / "build/image" / program
    name = options.name or f"trainplane/{program}:latest"
    try:
        built = build(options.base, output.resolve(), options.engine.split(), program, name)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"image: `{' '.join(error.cmd[:4])} …` ended with {error.returncode}\n")
        return 1
    sys.stdout.write(f"image: {built['name']} {built['megabytes']} MB {built['digest']}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
