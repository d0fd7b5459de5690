"""Patterns of files to leave behind, as `.gitignore` has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Rule:
    """One pattern."""

    pattern: re.Pattern[str]
    """Matches paths below the folder whose file has it."""
    folders_only: bool
    keeps: bool
    """It began with `!`: what it matches is shipped although an earlier pattern says no."""
    base: str = ""
    """The folder whose file has it: empty, or with a slash at the end."""

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the rule speaks of a path."""
        if self.folders_only and not is_folder:
            return False
        return path.startswith(self.base) and bool(self.pattern.fullmatch(path[len(self.base) :]))


def parse(lines: Iterable[str], base: str = "") -> list[Rule]:
    """Return the rules that lines of such a file mean."""
    return [rule for line in lines if (rule := _rule(line, base))]


def ignores(rules: Iterable[Rule], path: str, *, is_folder: bool) -> bool:
    """Return whether a path stays behind: the last rule that speaks of it decides."""
    verdict = False
    for rule in rules:
        if rule.matches(path, is_folder=is_folder):
            verdict = not rule.keeps
    return verdict


def _rule(line: str, base: str) -> Rule | None:
    text = re.sub(r"(?<!\\)\s+$", "", line)
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    return Rule(re.compile(_translate(text.lstrip("/"), anchored=anchored)), folders_only, keeps, base)


def _translate(text: str, *, anchored: bool) -> str:
    """Return a regular expression: `*` and `?` stay inside a name, `**` goes through folders."""
    out = "" if anchored else "(?:.*/)?"
    words = re.findall(r"\*\*/|/\*\*$|\*+|\?|\[!?[^\]]+\]|\\.|.", text)
    for word in words:
        if word == "**/":
            out += "(?:.*/)?"
        elif word == "/**":
            out += "/.+"
        elif word.startswith("*"):
            out += "[^/]*"
        elif word == "?":
            out += "[^/]"
        elif word.startswith("["):
            out += word.replace("[!", "[^").replace("\\", "\\\\")
        else:
            out += re.escape(word[-1])
    return out
