"""HTML as a browser reads it: every element closed, and what is text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Seen:
    """What a piece of HTML holds."""

    tags: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = Seen()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.tags.add(tag)
        self.seen.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        self.seen.texts.append(data)


def read(html: str) -> Seen:
    """Read HTML; fails unless every element in it is closed."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open, f"not closed: {reader.open}"
    return reader.seen
