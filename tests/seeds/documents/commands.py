"""Commands that stand in a sentence, as a reader reads them.

In pages that lost their faces a command runs into the word after it. A dash ends it; without one, it ends in the word
that begins with a word of kubectl's and is none.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.seeds.documents.reading import Statement

_BEFORE_A_DASH: Final = re.compile(r"kubectl [^—]*(?=— )")
_WORDS: Final = ("trainjobs", "jobsets", "--follow")
"""Words of kubectl's that another may have run into."""
_PLACEHOLDER: Final = re.compile(r"<([a-z-]+)>")


def command_of(statement: Statement, **fillings: str) -> list[str]:
    """Return the words after `kubectl`; what stands in angle brackets is filled in."""
    found = _BEFORE_A_DASH.search(statement.text)
    words = shlex.split(found[0]) if found else _up_to_the_glue(statement.text)
    names = {name.replace("_", "-"): value for name, value in fillings.items()}
    return [_PLACEHOLDER.sub(lambda match: names[match[1]], word) for word in words[1:]]


def _up_to_the_glue(text: str) -> list[str]:
    words = []
    for word in text[text.index("kubectl ") :].split():
        known = next((one for one in _WORDS if word.startswith(one)), word)
        words.append(known)
        if known != word:
            return words
    return words
