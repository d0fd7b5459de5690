"""Taking out what looks like a credential, before a text that a pod wrote is kept where many may read it.

Looser than the table by which jobs are refused: a word too much that is hidden costs nothing, a token that is shown
does. Every pattern is bounded and begins with a fixed word, so time is linear in the text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

HIDDEN: Final = "[redacted]"

_NAMES: Final = (
    "password|passwd|passphrase|pwd|secret|token|credential|credentials|authorization|cookie|signature|(?<![a-z])sig|"
    "api[_-]?key|apikey|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|session[_-]?key"
)
_VALUE: Final = r"""(?!\[redacted\])(?!(?:bearer|basic|negotiate|apikey) \[redacted\])[^\s"',;&)}]{3,}"""


def _hide(pattern: str, *, keep: bool = False, behind: str = "") -> tuple[re.Pattern[str], str]:
    """Return a pattern and what takes its place; `keep`: its first group stays."""
    return re.compile(pattern), (r"\1" if keep else "") + behind + HIDDEN


_TABLE: Final = (
    # user:password@ and token@ of an address
    _hide(r"(://)[^\s/@]{1,512}(?=@)", keep=True),
    # a header, or what a library prints of one
    _hide(r"(?i)\b(bearer|basic|negotiate|apikey) +[\w.~+/=-]{6,}", keep=True, behind=" "),
    # by how they begin
    _hide(r"\b(?:hf|api_org|gh[pousr]|github_pat|npm|r8|gsk|wandb_v1|dckr_[po]at|KGAT)_[A-Za-z0-9_-]{8,}"),
    _hide(r"\b(?:sk|rk|pk|gl(?:pat|dt|rt|ptt|cbt)|xox[abeprs]|xapp|nvapi|xai|pypi|GOCSPX)-[\w-]{8,}"),
    _hide(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"),
    _hide(r"\b(?:AIza[\w-]{20,}|ya29\.[\w-]{8,}|hv[sb]\.[\w-]{8,}|dapi[0-9a-f]{16,})"),
    _hide(r"\beyJ[\w-]{6,}(?:\.[\w-]*){1,2}"),
    _hide(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*"),
    _hide(r"\bAGE-SECRET-KEY-1[A-Z0-9]+"),
    # NAME=value, "name": "value", --name value
    _hide(rf"""(?i)((?:{_NAMES})\b\\?["']?\s{{0,4}}(?:=>?|:)\s{{0,4}}\\?["']?){_VALUE}""", keep=True),
    _hide(rf"""(?i)((?<=-)(?:{_NAMES})[ =]["']?){_VALUE}""", keep=True),
    # alone, long, of one piece, of small letters, capitals and digits
    _hide(r"(?<![\w/+.-])(?=\w{0,39}[a-z])(?=\w{0,39}[A-Z])(?=\w{0,39}[0-9])[A-Za-z0-9+/]{40}=*(?![\w/+.-])"),
)


@lru_cache(maxsize=256)
def redact(text: str) -> str:
    """Return a text without what looks like a credential; of many jobs, most say the same."""
    for pattern, replacement in _TABLE:
        text = pattern.sub(replacement, text)
    return text
