"""`python -m docs.site.build`: the documentation as a site, in build/site/VERSION; Sphinx' warnings are errors.

Versions lie beside each other: a build replaces its own folder, and writes anew what is common to all: `versions.js`,
from which every page fills its list of versions, and `index.html`, which leads to the newest.
"""  # noqa: INP001 a command beside what it builds, no package

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import trainplane

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
SPHINX = ROOT / "build" / "docs" / "bin" / "sphinx-build"
FIRST = "docs/index.html"
_REDIRECT = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Trainplane</title>
<meta http-equiv="refresh" content="0; url={0}">
<p>The documentation is at <a href="{0}">{0}</a>.
</html>
"""


def newest_first(versions: list[str]) -> list[str]:
    """Return versions in order; what comes before a release (`0.2.0.dev0`, `0.2.0rc1`) is older than it."""

    def key(version: str) -> tuple[list[int], bool, list[str]]:
        release = re.match(r"\d+(?:\.\d+)*", version)
        numbers = [int(number) for number in release[0].split(".")] if release else []
        rest = version[release.end() :] if release else version
        return numbers, not rest, re.findall(r"[a-z]+|\d+", rest)

    return sorted(versions, key=key, reverse=True)


def write_common(site: Path) -> list[str]:
    """Write what all versions of a site share, from the folders that are there; return the versions, newest first."""
    versions = newest_first([folder.name for folder in site.iterdir() if (folder / FIRST).exists()])
    pages = {
        version: sorted(str(page.relative_to(site / version)) for page in (site / version).rglob("*.html"))
        for version in versions
    }
    (site / "versions.js").write_text(f"window.TRAINPLANE_VERSIONS = {json.dumps(pages)};\n")
    (site / "index.html").write_text(_REDIRECT.format(f"{versions[0]}/{FIRST}"))
    return versions


def build(version: str, site: Path) -> int:
    """Build a version; return Sphinx' exit code, which is not 0 if it had anything to warn of."""
    folder = site / version
    shutil.rmtree(folder, ignore_errors=True)
    state = ("-d", str(ROOT / "build/docs/doctrees"))
    strict = ("--fail-on-warning", "--keep-going", "--nitpicky")
    here = ("-c", str(Path(__file__).parent), "-D", f"release={version}", "-D", f"version={version}")
    command = [str(SPHINX), "-b", "html", "--jobs=auto", "--quiet", *strict, *here, *state, str(ROOT), str(folder)]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        (folder / "index.html").write_text(_REDIRECT.format(FIRST))
        write_common(site)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Build the site of this checkout's version."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--site", type=Path, default=SITE, help="where versions lie beside each other")
    given = parser.parse_args(arguments)
    return build(trainplane.__version__, given.site)


if __name__ == "__main__":
    sys.exit(main())
