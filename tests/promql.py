"""Names in a PromQL query. Whether it is one, Prometheus decides (`tests/install/test_monitoring.py`, with FULL=1)."""

from __future__ import annotations

import re

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_MATCHERS = re.compile(r"\{([^{}]*)\}")
_SPAN = re.compile(r"\[[^\]]*\]")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right) ?\(([^()]*)\)")
_NAME = re.compile(r"(?<![\w.:$])[a-zA-Z_:][\w:]*(?![\w:])(?!\s*\()")
_WORDS = {"and", "or", "unless", "bool", "offset"}


def metrics(query: str) -> set[str]:
    """Return the names of the series that a query reads."""
    bare = _GROUPING.sub(" ", _SPAN.sub("", _MATCHERS.sub("", _TEXT.sub("", query))))
    return {name for name in _NAME.findall(bare) if name not in _WORDS}


def labels(query: str) -> set[str]:
    """Return the names of the labels that a query chooses or groups by."""
    bare = _TEXT.sub('""', query)
    chosen = {name for one in _MATCHERS.findall(bare) for name in re.findall(r'(\w+) ?[=!][=~]?""', one)}
    return chosen | kept(query)


def kept(query: str) -> set[str]:
    """Return the labels by which a query groups its answer."""
    return {name.strip() for one in _GROUPING.findall(_TEXT.sub('""', query)) for name in one.split(",")}
