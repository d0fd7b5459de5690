"""What somebody would write who wants a page to do something, and a reader of HTML that sees whether it would."""

from __future__ import annotations

from html.parser import HTMLParser

MARKUP = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></textarea><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "<!--<script>",
    "\x1b]8;;javascript:alert(1)\x07click\x1b]8;;\x07",
    "\u202ereversed\u2066",
    "&lt;script&gt;",
    "\x00<\x00script>",
)
_TAGS = (
    "html head meta title link script style body a header nav ul ol li main div footer p time span section h1 h2 h3 dl "
    "dt dd table caption thead tbody tr th td b details summary svg polyline rect figure figcaption progress meter "
    "form label input button"
)
TAGS = frozenset(_TAGS.split())
"""All that our pages are made of."""


class Elements(HTMLParser):
    """Every element of a page with its attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            self.open.remove(tag)

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["style"], ["script"]):
            self.text += data


def dangers(page: str) -> list[str]:
    """Return what a page has that could run, load or lead somewhere."""
    found = []
    for tag, attributes in Elements(page).elements:
        if tag not in TAGS:
            found.append(f"element {tag}")
        for name, value in attributes.items():
            if name.startswith("on") or name in {"style", "srcset", "formaction", "srcdoc"}:
                found.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action"} and not value.startswith(("/", "#")):
                found.append(f"{tag} {name}={value}")
            if name in {"href", "src", "action"} and value.startswith("//"):
                found.append(f"{tag} {name}={value}")
        if tag == "script" and attributes != {"src": "/script.js", "defer": ""}:
            found.append("a script of somebody's")
    return found
