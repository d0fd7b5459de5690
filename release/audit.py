"""What is publicly known against the libraries of `requirements/*.txt`, by pip-audit.

pip-audit ends well when the service does not know a library, so its word is counted: what was not judged is not called
clean. Where no service answers, nothing is known, and that is said.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from release.errors import MissingToolError, ReleaseError

if TYPE_CHECKING:
    from pathlib import Path

SHIPPED: Final = ("operator", "base", "initializers", "cache")
"""Lists whose libraries users run: what is known against them stops a release. Of others it is told."""


@dataclass(frozen=True)
class Audit:
    """What a service said of one list."""

    name: str
    judged: int
    unknown: int
    """Libraries that the service did not know."""
    findings: tuple[str, ...]


def run(tree: Path, tools: Path) -> list[Audit]:
    """Audit every list, those that are shipped first.

    Raises:
        MissingToolError: pip-audit is not installed, or no service judges anything.
        ReleaseError: something is known against a library that is shipped, or one of them was not judged.
    """
    program = tools / "pip-audit"
    if not program.exists():
        raise MissingToolError(f"{program.name}: is not installed: run `make release`, which installs it")
    others = sorted(path.stem for path in (tree / "requirements").glob("*.txt") if path.stem not in SHIPPED)
    audits: list[Audit] = []
    for name in (*SHIPPED, *others):
        audits.append(_one(tree / f"requirements/{name}.txt", program))
        if not audits[0].judged:
            first = audits[0].unknown
            raise MissingToolError(f"pip-audit: the service knows none of {first} libraries: nothing was audited")
    problems = [
        problem
        for audit in audits
        if audit.name in SHIPPED
        for problem in (*audit.findings, *([f"{audit.unknown} libraries were not judged"] if audit.unknown else []))
    ]
    if problems:
        raise ReleaseError(*problems)
    return audits


def _one(path: Path, program: Path) -> Audit:
    words = [str(program), "--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json"]
    done = subprocess.run([*words, f"--requirement={path}"], capture_output=True, text=True, timeout=600, check=False)
    try:
        return judge(path.stem, json.loads(done.stdout))
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise MissingToolError(f"pip-audit: ended with {done.returncode}: {last[:500]}") from None


def judge(name: str, tree: Any) -> Audit:
    """Read what pip-audit wrote of one list."""
    libraries = tree["dependencies"]
    judged = [one for one in libraries if "skip_reason" not in one]
    findings = tuple(
        f"requirements/{name}.txt: {one['name']} {one['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for one in judged
        for found in one["vulns"]
    )
    return Audit(name, len(judged), len(libraries) - len(judged), findings)
