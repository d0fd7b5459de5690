"""What stands around each page: head, navigation, main, footer. A page of the server, or one file for a mail.

The report is the same page as one file: the style in it, no script, no address of anything else; and a content policy
that forbids both, so that even a fault of ours could load and run nothing where the file is opened.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from trainplane.page.job import job_page
from trainplane.page.markup import Html, tag

if TYPE_CHECKING:
    from datetime import datetime

    from trainplane.page.look import Look

PLACES: Final = (("/", "Fleet"), ("/jobs", "TrainJobs"))
_META: Final = Html(
    '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
)
_LINKS: Final = Html('<link rel="stylesheet" href="/style.css"><script src="/script.js" defer></script>')


def served(title: str, body: Html, now: datetime, *, place: str = "", refresh: int = 0, stream: str = "") -> str:
    """Return a page of the server.

    Args:
        title: What it shows.
        body: What stands in main.
        now: When it was looked.
        place: Which of the places in the navigation it is.
        refresh: Seconds after which the script looks again; 0: not by itself.
        stream: Where the script hears of changes and log lines.
    """
    links = (
        tag("li", tag("a", name, href=path, **({"aria_current": "page"} if path == place else {})))
        for path, name in PLACES
    )
    navigation = tag("nav", tag("ul", *links), aria_label="pages")
    live = {key: value for key, value in {"data_refresh": str(refresh or ""), "data_stream": stream}.items() if value}
    return _document(title, _LINKS, navigation, body, _footer("Seen", now), **live)


def report(look: Look) -> str:
    """Return the page of a TrainJob as one file; give it a look at facts that are `look.handed_on`."""
    style = Html(f"<style>{style_sheet()}</style>")
    digest = base64.b64encode(hashlib.sha256(style_sheet().encode()).digest()).decode()
    policy = Html(
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
    )
    body = job_page(look)
    return _document(f"TrainJob {look.job.name}", Html(policy + style), Html(""), body, _footer("Written", look.now))


@cache
def style_sheet() -> str:
    """Return the one style sheet of all pages."""
    return files("trainplane.page").joinpath("style.css").read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return the script of pages that are open."""
    return files("trainplane.page").joinpath("script.js").read_text(encoding="utf-8")


def _footer(done: str, now: datetime) -> Html:
    when = tag("time", f"{now:%Y-%m-%d %H:%M:%S}Z", datetime=f"{now:%Y-%m-%dT%H:%M:%SZ}")
    said = tag("p", f"{done} ", when, " by Trainplane, with the rights of whoever asked. Read-only.")
    return tag("footer", said, id="seen", data_live="yes")


def _document(title: str, extra: Html, navigation: Html, body: Html, footer: Html, **live: str) -> str:
    skip = tag("a", "Skip to the content", href="#main", class_="skip")
    banner = tag("header", tag("p", "Trainplane", class_="brand"), navigation)
    main = tag("main", body, id="main", tabindex="-1")
    head = Html(f"<head>{_META}{tag('title', f'{title} · Trainplane')}{extra}</head>")
    return f'<!doctype html>\n<html lang="en">{head}{tag("body", skip, banner, main, footer, **live)}</html>\n'
