"""`python runtimes/pin.py [--check] [FOLDER]`: write the images of images.txt into the runtimes, or say what is stale.

A runtime is a plain file that `kubectl apply` takes as it is. A line of it that ends in `# images.txt: NAME` has the
image of that name; every other line is its author's.
"""  # noqa: INP001 a command beside the files it writes, no package

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

_PINNED = re.compile(r"^(?P<head>[ -]*image: )\S+(?P<tail> +# images\.txt: (?P<name>\S+))$", re.MULTILINE)
_IMAGE = re.compile(r"^[ -]*image: ", re.MULTILINE)


def pin(text: str, images: dict[str, str]) -> str:
    """Return a runtime with the images of their names.

    Raises:
        ValueError: an image has no name, or one that images.txt does not have.
    """
    named = [found["name"] for found in _PINNED.finditer(text)]
    if len(named) != len(_IMAGE.findall(text)):
        raise ValueError("an image has no name: end its line with `# images.txt: NAME`")
    for name in named:
        if name not in images:
            raise ValueError(f"images.txt has no {name}")
    return _PINNED.sub(lambda found: f"{found['head']}{images[found['name']]}{found['tail']}", text)


def pinned(folder: Path) -> dict[Path, str]:
    """Return each runtime of a folder whose text is not what images.txt says, with the text that is."""
    lines = (folder / "images.txt").read_text().splitlines()
    images = {name: image for name, _, image in (line.partition(" ") for line in lines if not line.startswith("#"))}
    stale: dict[Path, str] = {}
    used: set[str] = set()
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text()
        try:
            wanted = pin(text, images)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        used |= {found["name"] for found in _PINNED.finditer(wanted)}
        if wanted != text:
            stale[path] = wanted
    if images.keys() - used:
        raise ValueError(f"no runtime has the image {', '.join(sorted(images.keys() - used))}: take it from images.txt")
    return stale


def main(arguments: list[str] | None = None) -> int:
    """Write or check; 1 if a runtime is stale or names no image of images.txt."""
    parser = argparse.ArgumentParser(description="Write the images of images.txt into the runtimes.")
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if a runtime is stale")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    options = parser.parse_args(arguments)
    try:
        stale = pinned(options.folder)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for path, text in stale.items():
        if options.check:
            sys.stderr.write(f"{path} has other images than images.txt: run `make manifests` and commit it\n")
        else:
            path.write_text(text)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
