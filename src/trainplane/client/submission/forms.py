"""What tokens, keys and passwords look like: the table by which everything that leaves is searched.

A table of our own, because the SDK lands in notebooks: `detect-secrets` and `gitleaks`, whose rules were read for it,
are a dependency that loads plugins and a program in Go; and they are made to be looked through by a person afterwards,
while a match here refuses a job. So a form is either unmistakable (`ghp_` and 36 letters) or stands beside the words
that say what it is (`WANDB_API_KEY = ` and 40 hex digits). Entropy alone is nobody's proof: hashes, ids and weights
have it, too. `tests/unit/client/submission/test_search.py` holds the table against the standard library and every
installed package.

Each form begins with one of its `words`, found by the fastest search that there is, and is tried there alone. What a
pattern may read from there is bounded, or ends where the next try begins: time is linear in the text, whatever it is.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Form:
    """One kind of secret. The group `value` of the pattern is the secret itself; without one, all that matches."""

    what: str
    """For messages: `a token of GitHub`."""
    words: tuple[bytes, ...]
    """With one of these the pattern begins; small letters, whatever the pattern says of them."""
    pattern: re.Pattern[bytes]
    is_meant: Callable[[bytes], bool] | None = None
    """A last look at the value, where the pattern alone says too much."""

    @property
    def group(self) -> int:
        """The group of the pattern that is the secret."""
        return self.pattern.groupindex.get("value", 0)

    def value(self, match: re.Match[bytes]) -> bytes:
        """Return what is secret of a match."""
        return match[self.group]

    def means(self, match: re.Match[bytes]) -> bool:
        """Return whether a match is a secret, and not what people write in place of one."""
        value = self.value(match)
        return not is_placeholder(value) and (self.is_meant is None or self.is_meant(value))


def _form(what: str, words: str, pattern: str, is_meant: Callable[[bytes], bool] | None = None) -> Form:
    return Form(what, tuple(words.encode().split(b"|")), re.compile(pattern.encode()), is_meant)


def is_placeholder(value: bytes) -> bool:
    """Return whether a value is one that people write in place of a secret: the stated allow-list.

    Vendors' examples have `EXAMPLE` in them (`AKIAIOSFODNN7EXAMPLE`), tutorials have rows of x, templates have braces,
    dollar signs and angle brackets.
    """
    return bool(_PLACEHOLDER.search(value))


_PLACEHOLDER: Final = re.compile(
    rb"(?i)example|x{8}|placeholder|your[_-]|[-_]here\b|changeme|redacted|\*{3}|\.{3}|[${}<>]"
)


def _looks_drawn(value: bytes) -> bool:
    """Return whether a value beside a word such as `password` was drawn: letters, digits, no words and no path."""
    if not (re.search(rb"[0-9]", value) and re.search(rb"[A-Za-z]", value)) or _SAID.search(value):
        return False
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy > _DRAWN


_SAID: Final = re.compile(
    rb"(?i)password|passwd|://|^\.?/|^[a-z_]\w*(?:\.[a-z_]\w*)+$|^[a-z]+\d{0,2}(?:[_-](?:[a-z]+\d{0,2}|\d{1,4}))+$"
)
"""Paths, addresses, variables such as `settings.key_2`, and words such as `team-api-key-2`."""
_DRAWN: Final = 3.0
"""Bits for each letter: sixteen hex digits that were drawn have 3.2, on average; words and versions less."""


def _is_user_and_password(value: bytes) -> bool:
    try:
        return b":" in base64.b64decode(value, validate=True)
    except binascii.Error:
        return False


def _is_mixed(value: bytes) -> bool:
    """Return whether a value has all of small letters, capitals and digits: a hash has not."""
    return all(re.search(kind, value) for kind in (rb"[a-z]", rb"[A-Z]", rb"[0-9]"))


def _is_password(value: bytes) -> bool:
    return value.lower() not in _NO_PASSWORDS


_NO_PASSWORDS: Final = frozenset({b"pass", b"passwd", b"password", b"pw", b"pwd", b"secret", b"token", b"hunter2"})
"""What documentation writes where a password would stand."""

_NEW: Final = r"(?<![A-Za-z0-9_-])"
"""Not in the midst of something longer."""
_IS: Final = r"""(?:\\?["']?[ \t]{0,20}=>?|\\?["']?[ \t]{0,20}:(?=[ \t"'\\]))[ \t]{0,20}(?:[rbuf]?\\?["'])?"""
"""Between a name and its value, in Python, YAML, JSON, INI and shells; not in `arn:secret:name`."""
_NEXT_LINE: Final = r"(?:[ \t]*\r?\n|\\r\\n|\\n)\s{0,40}"
"""Between two lines of a key, also where they are written into a text."""
_NAMES: Final = (
    "password|passwd|passphrase|secret|secret_key|api_key|api-key|apikey|access_key|"
    "access_token|api_token|auth_token|bot_token|hf_token|hub_token|refresh_token"
)

FORMS: Final = (
    # -- by how they begin
    _form("a token of the Hugging Face hub", "hf_|api_org_", _NEW + r"(?:hf|api_org)_[A-Za-z0-9]{30}"),
    _form("a token of GitHub", "ghp_|gho_|ghu_|ghs_|ghr_", _NEW + r"gh[pousr]_[A-Za-z0-9]{30}"),
    _form("a token of GitHub", "github_pat_", _NEW + r"github_pat_[A-Za-z0-9_]{30}"),
    _form("a token of GitLab", "glpat-|gldt-|glrt-|glptt-|glcbt-", _NEW + r"gl(?:pat|dt|rt|ptt|cbt)-[\w-]{20}"),
    _form("a key of Anthropic", "sk-ant-", _NEW + r"sk-ant-[\w-]{20}"),
    _form("a key of OpenAI", "sk-", _NEW + r"sk-(?:[A-Za-z0-9]{20}|(?:proj|svcacct|admin|None|or-v1)-[\w-]{20})"),
    _form("a key of Google", "aiza", _NEW + r"AIza[\w-]{35}(?![\w-])"),
    _form("a token of Google", "ya29.", _NEW + r"ya29\.[\w-]{20}"),
    _form("a secret of a Google application", "gocspx-", _NEW + r"GOCSPX-[\w-]{28}"),
    _form("a token of Slack", "xoxa-|xoxb-|xoxe-|xoxp-|xoxr-|xoxs-|xapp-", _NEW + r"(?:xox[abeprs]|xapp)-[\w-]{10}"),
    _form(
        "an address that writes into Slack", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows)/[\w/]{24}"
    ),
    _form("an address that writes into Discord", "api/webhooks/", r"api/webhooks/\d{17,20}/[\w-]{60}"),
    _form("a token of npm", "npm_", _NEW + r"npm_[A-Za-z0-9]{36}"),
    _form("a token of a package index", "pypi-ag", _NEW + r"pypi-Ag[\w-]{40}"),
    _form("a token of Docker Hub", "dckr_pat_|dckr_oat_", _NEW + r"dckr_[po]at_[\w-]{20}"),
    _form("a key of Weights & Biases", "wandb_v1_", _NEW + r"wandb_v1_\w{40}"),
    _form("a token of Databricks", "dapi", _NEW + r"dapi[0-9a-f]{32}"),
    _form("a key of NVIDIA", "nvapi-", _NEW + r"nvapi-[\w-]{40}"),
    _form("a key of Replicate", "r8_", _NEW + r"r8_[A-Za-z0-9]{37}"),
    _form("a key of Groq", "gsk_", _NEW + r"gsk_[A-Za-z0-9]{40}"),
    _form("a key of xAI", "xai-", _NEW + r"xai-[A-Za-z0-9]{60}"),
    _form("a token of Vault", "hvs.|hvb.", _NEW + r"hv[sb]\.[\w-]{80}"),
    _form("a token of Kaggle", "kgat_", _NEW + r"KGAT_[0-9a-f]{32}"),
    _form("a signed token (JWT)", "eyj", _NEW + r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
    # -- keys
    _form(
        "a private key",
        "-----begin ",
        rf"""-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----(?:{_NEXT_LINE}|\\?["'][,\s+]{{1,40}}b?["'])"""
        r"[A-Za-z0-9+/][A-Za-z0-9+/=:, -]{0,63}",
    ),
    _form(
        "a private key of PuTTY", "putty-user-key-file-", r"PuTTY-User-Key-File-\d: [\w-]{3,40}" + _NEXT_LINE + r"\w"
    ),
    _form("a private key of OpenSSH", "b3blbnnzac1rzxktdje", r"b3BlbnNzaC1rZXktdjEA[A-Za-z0-9+/]{20,64}"),
    _form("a private key of age", "age-secret-key-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50}"),
    # -- beside the words that say what they are
    _form(
        "the secret of an AWS key",
        "aws_secret_access_key|aws_secret_key|secretaccesskey|secret_access_key",
        rf"(?i:aws_secret_access_key|aws_secret_key|secretaccesskey|secret_access_key){_IS}"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    _form(
        "the secret that belongs to an AWS key",
        "akia|asia",
        _NEW + r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])[^\0]{1,200}?"
        r"(?<![A-Za-z0-9/+])(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        _is_mixed,
    ),
    _form("a session token of AWS", "aws_session_token", rf"(?i:aws_session_token){_IS}(?P<value>[\w/+=]{{100}})"),
    _form(
        "a key of Weights & Biases",
        "wandb",
        rf"(?i:wandb)(?:[\w.-]{{0,20}}{_IS}|\.login\(\s{{0,20}}(?:key\s?=\s?)?[\"']| login (?:--relogin )?)"
        r"(?P<value>[0-9a-f]{40})(?![0-9a-f])",
    ),
    _form(
        "a key of Kaggle",
        '"username"',
        r'"username"\s{0,8}:\s{0,8}"[^"\n]{1,64}"\s{0,20},\s{0,20}"key"\s{0,8}:\s{0,8}"(?P<value>[0-9a-f]{32})"',
    ),
    _form(
        "a key of Azure",
        "accountkey=|sharedaccesskey=",
        r"(?i:accountkey|sharedaccesskey)=(?P<value>[A-Za-z0-9+/]{40,88}=)",
    ),
    _form("a signature of Azure", "sig=", r"(?<=[?&;])(?i:sig)=(?P<value>[A-Za-z0-9%/+]{43,60})"),
    _form("the key of a kubeconfig", "client-key-data", rf"client-key-data{_IS}(?P<value>[A-Za-z0-9+/]{{40}})"),
    _form(
        "the token of a kubeconfig",
        "user:",
        r"user:[ \t]{0,8}\r?\n(?:[ \t]{1,40}[a-z-]{1,40}:[^\n]{0,8192}\n){0,4}[ \t]{1,40}(?:token|password): ?"
        r"[\"']?(?P<value>[^\s\"'\0]{8,200})",
    ),
    _form(
        "a login of a .netrc",
        "machine",
        r"machine\s{1,8}[\w.:-]{1,100}\s{1,8}login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<value>[^\s\0]{4,200})",
        _is_password,
    ),
    _form("a login of npm", "_authtoken=|:_password=", r"(?:_authToken|:_password)=(?P<value>[^\s\"'(,\0]{8,200})"),
    _form(
        "a login of a container registry",
        '"auth"',
        r'"auth"\s{0,8}:\s{0,8}"(?P<value>[A-Za-z0-9+/]{8,4000}={0,2})"',
        _is_user_and_password,
    ),
    _form(
        "a header that logs in",
        "authorization",
        r"(?i:authorization\\?[\"']?\s{0,8}[:=,]\s{0,8}f?\\?[\"']?(?:bearer|basic|token)) "
        r"(?P<value>[\w.~+/=-]{16,400})",
        _looks_drawn,
    ),
    _form(
        "a password in an address",
        "://",
        r"://[^\s/:@\"'`<>{}\[\]()|,;\\]{0,100}:(?P<value>[^\s/:@\"'`<>{}\[\]()|,;\\\0]{3,200})@[A-Za-z0-9\[]",
        _is_password,
    ),
    _form("a token in an address", "://", r"://(?P<value>[\w.~-]{20,200})@[A-Za-z0-9]", _looks_drawn),
    _form(
        "a value by a secret's name",
        _NAMES,
        rf"(?<!:)(?i:{_NAMES}){_IS}(?P<value>[\w.~+/=!@#%^*-]{{12,200}})(?![\w.~+/=!@#%^*(\[-])",
        _looks_drawn,
    ),
)
