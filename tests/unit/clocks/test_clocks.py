"""Check that no test depends on how fast the machine is, except those that `exceptions.txt` lists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.unit.clocks import rules
from tests.unit.clocks.reads import Project

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.unit.clocks.syntax import Finding

REPOSITORY = Path(__file__).resolve().parents[3]
LIST = Path(__file__).with_name("exceptions.txt")
RULES = {"elapsed", "limit", "loop", "read"}
_LINE = re.compile(r"(?P<key>(?P<rule>\w+) \S+::\S+) (?P<count>\d+)(?:  # (?P<reason>.+))?")


def listed(text: str) -> dict[str, int]:
    """Return the exceptions of a list: how many findings each place has. Rules other than `read` need a reason."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match, f"{LIST.name}:{number}: not `rule path::function count  # reason`: {line}"
        assert match["rule"] in RULES, f"{LIST.name}:{number}: unknown rule {match['rule']}: use one of {sorted(RULES)}"
        assert match["reason"] or match["rule"] == "read", f"{LIST.name}:{number}: add `  # reason`"
        assert match["key"] not in found, f"{LIST.name}:{number}: {match['key']} is listed twice: delete one line"
        found[match["key"]] = int(match["count"])
    return found


def differences(findings: Iterable[Finding], exceptions: dict[str, int]) -> Iterator[str]:
    """Yield findings that are not listed, and exceptions that the code no longer needs."""
    findings = list(findings)
    counts = Counter(finding.key for finding in findings)
    for finding in findings:
        if counts[finding.key] > exceptions.get(finding.key, 0):
            yield str(finding)
    for key, count in exceptions.items():
        if counts[key] < count:
            fix = f"set its count to {counts[key]}" if counts[key] else "delete the line"
            yield f"{LIST.name}: {key} lists {count}, found {counts[key]}: {fix}"


def test_tests_do_not_depend_on_the_speed_of_the_machine() -> None:
    findings: list[Finding] = list(Project.load(REPOSITORY).findings())
    for file in sorted((REPOSITORY / "tests").rglob("*.py")):
        findings += rules.findings(file.relative_to(REPOSITORY).as_posix(), file.read_text())
    wrong = list(differences(findings, listed(LIST.read_text())))
    assert not wrong, "\n".join(["", *wrong])
