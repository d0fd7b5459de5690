"""YAML that Go and Python read alike.

Snapshots are read by whichever operator runs: ours, or the reference's after a swap back. The two libraries disagree on
which bare words are booleans or numbers (`y`, `1e3`), so only words that nobody can mistake are left bare.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*[A-Za-z0-9]")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"})


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc] # the C one where there is one
    """Quotes whatever could be taken for something else than a string."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 the name is the library's
        """Write shared parts in full: `&id001` is no word of a manifest."""
        return True


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # as above
    """Reads times as the texts that they are."""


def _represent(dumper: Any, text: str) -> Any:
    if "\n" in text:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    bare = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if bare else '"')


_Dumper.add_representer(str, _represent)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def dump(tree: Any) -> str:
    """Return a tree as YAML, keys in order."""
    text: str = yaml.dump(tree, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1 << 16)
    return text


def load(text: str) -> Any:
    """Return the tree of a YAML text; raises `yaml.YAMLError`."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 a subclass of the safe one
