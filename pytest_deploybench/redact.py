"""Removes keys and tokens from text before it touches a disk, and makes hostile text harmless to show.

Promises a reviewer can check: pure; every pattern is data in one table; every repetition is bounded or possessive, so
no input makes a pattern backtrack without end; redacting twice changes nothing more; digests, commit hashes and
package names stay.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, partial
from urllib.parse import quote, quote_plus

_SHORTEST_SECRET = 4
_SHORTEST_ENCODED = 8

_START = r"(?<![A-Za-z0-9_-])"
_NAMES = r"(?:API[_-]?KEY|ACCESS[_-]KEY|SECRET[_-]KEY|PRIVATE[_-]KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)"
_NAMES_HOLD = "apikey api_key api-key access_key access-key private_key private-key token secret passw credentials"
_IS = r"(?:\\?[\"'])?\s{0,4}[=:]\s{0,4}"
_PEM_EDGE = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"

PATTERNS: tuple[tuple[str, str, str], ...] = (
    ("private-key", "-----begin", rf"-----BEGIN {_PEM_EDGE}(?:[^-]|-(?!----)){{0,20000}}+-----END {_PEM_EDGE}"),
    # A key cut off by the end of the text: the lines that can only be key material go.
    ("private-key", "-----begin", rf"-----BEGIN {_PEM_EDGE}(?>(?:\s|\\[nr]){{1,4}}+[A-Za-z0-9+/=]{{16,}}){{1,400}}+"),
    ("url-password", "://", r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s/:@\[\"']{0,100}:)[^\s/@\"']{1,300}+(?=@)"),
    ("anthropic-key", "sk-ant-", rf"{_START}sk-ant-[A-Za-z0-9_-]{{16,}}+"),
    ("openai-key", "sk-", rf"{_START}sk-(?:or-v1-)?[0-9a-f]{{32,64}}(?![A-Za-z0-9_-])"),
    # Digits and capitals tell a key from a package whose name happens to begin with sk-.
    (
        "openai-key",
        "sk-",
        rf"{_START}(?=sk-[A-Za-z_-]{{0,80}}[0-9])(?=sk-[a-z0-9_-]{{0,80}}[A-Z])sk-[A-Za-z0-9_-]{{20,}}+",
    ),
    ("google-key", "aiza", rf"{_START}AIza[A-Za-z0-9_-]{{35,}}+"),
    ("google-token", "ya29. aq.", rf"{_START}(?:ya29\.|AQ\.)[A-Za-z0-9_-]{{30,}}+"),
    ("xai-key", "xai-", rf"{_START}xai-[A-Za-z0-9]{{24,}}+"),
    ("huggingface-token", "hf_", rf"{_START}hf_[A-Za-z0-9]{{30,}}+"),
    (
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{36,}}+|github_pat_[A-Za-z0-9_]{{22,}}+)",
    ),
    ("aws-key", "akia asia", rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9_-])"),
    ("bearer", "bearer", r"(?P<keep>\b[Bb]earer\s{1,4})(?=[A-Za-z._~+/=-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,}+"),
    (
        "header",
        "authorization api-key",
        r"(?P<keep>\b(?i:authorization\s{0,4}:\s{0,4}basic|(?:x-)?(?:goog-)?api-key\s{0,4}:)\s{0,4})"
        r"[A-Za-z0-9._~+/=-]{12,}+",
    ),
    # Environment variables are written in capitals and end in such a word; there any value counts. A value that is
    # only the name of another variable ($TOKEN) is no secret.
    (
        "assignment",
        _NAMES_HOLD,
        rf"(?P<keep>{_NAMES}{_IS}(?P<quote>\\?[\"'])?)(?![$\[])"
        r"(?(quote)[^\"'\\\n]{6,400}+|[^\s\"'`,;&|<>(){}\[\]\\]{6,}+)",
    ),
    # In lower case the same words are everyday names in programs, so only what looks like a key goes.
    (
        "assignment",
        _NAMES_HOLD,
        rf"(?P<keep>(?i:{_NAMES}){_IS}(?:\\?[\"'])?)"
        r"(?=[A-Za-z._/+=-]{0,200}[0-9])[A-Za-z0-9._/+=-]{16,}+",
    ),
)
"""What is a secret by its look alone: its kind, the words of which one stands in it whatever the case, and the pattern.

A group named `keep` survives in front of the mark. The words are quickly looked for, and most texts hold few of them.
"""

# CSI, OSC and DCS/PM/APC strings, then the two-character escapes. A string without its end is not taken as one, so
# nothing that follows can be hidden by it.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4000}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,2}[0-OQ-WYZ\\`-~]"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with keys and tokens replaced by marks that name their kind.

    `secrets` are removed whatever they look like: plain, URL-encoded and in base64, also from within a longer encoded
    text. A secret of fewer than 4 characters is not looked for; it would eat the text.
    """
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    if forms:
        text = re.sub("|".join(map(re.escape, forms)), "[redacted]", text)
    folded = text.casefold()
    for kind, words, pattern in _compiled():
        if any(word in folded for word in words):
            text = pattern.sub(partial(_mark, kind), text)
    return text


def printable(text: str) -> str:
    """Text from a guest that cannot move the cursor, hide or reorder anything when it is shown.

    Escape sequences go; other control, format and surrogate characters become visible escapes. Line feeds and tabs
    stay.
    """
    text = strip_escapes(text.replace("\r\n", "\n"))
    return "".join(char if _harmless(char) else _visible(char) for char in text)


def strip_escapes(text: str) -> str:
    """The text without terminal escape sequences (colours, cursor movement, titles)."""
    return _ESCAPES.sub("", text)


@cache
def _compiled() -> tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]:
    # On first use: an unrelated pytest run that merely imports this module does not pay for it.
    return tuple((kind, tuple(words.split()), re.compile(pattern)) for kind, words, pattern in PATTERNS)


def _mark(kind: str, match: re.Match[str]) -> str:
    return f"{match.groupdict().get('keep') or ''}[redacted:{kind}]"


def _forms(secret: str) -> Iterator[str]:
    """The ways in which a secret can stand in a text."""
    if len(secret) < _SHORTEST_SECRET:
        return
    yield from (secret, quote(secret, safe=""), quote_plus(secret))
    data = secret.encode("utf-8", "surrogatepass")
    for shift in range(3):
        # Within longer data the secret may start at any of three places of a base64 group; the characters that also
        # depend on its neighbours are left out.
        length = (shift + len(data)) * 8 // 6
        encoded = base64.b64encode(bytes(shift) + data).decode()[-(-shift * 8 // 6) : length]
        if len(encoded) >= _SHORTEST_ENCODED:
            yield from (encoded, encoded.translate(str.maketrans("+/", "-_")))


def _harmless(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
