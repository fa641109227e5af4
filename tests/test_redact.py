"""Keys go, everything else stays, and hostile text is shown as what it is.

The keys below are made up and put together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from urllib.parse import quote

import pytest

from pytest_deploybench.redact import PATTERNS, printable, redact, strip_escapes
from tests.regexes import HOSTILE_LINES, nested_quantifiers

MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7n"
BODY = "\n".join([MIXED + MIXED[:24]] * 4 + [MIXED[:22] + "=="])


def pem(kind: str, body: str = BODY) -> str:
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{body}\n-----END {kind}PRIVATE KEY-----"


KEYS = {
    "openai": "sk-" + MIXED,
    "openai project": "sk-proj-" + MIXED + "_" + MIXED,
    "openrouter": "sk-or-v1-" + "0123456789abcdef" * 4,
    "anthropic": "sk-ant-api03-" + MIXED + "-" + MIXED,
    "google": "AIza" + MIXED[:35],
    "google oauth": "ya29." + MIXED,
    "xai": "xai-" + MIXED * 2,
    "huggingface": "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    "github": "ghp_" + MIXED[:36],
    "github fine-grained": "github_pat_" + MIXED[:22] + "_" + MIXED,
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "openssh": pem("OPENSSH "),
    "rsa": pem("RSA "),
    "encrypted": pem("EC ", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\n" + BODY),
    "service account": pem("").replace("\n", "\\n"),
}

ASSIGNED = [
    ("OPENAI_API_KEY={}", "correcthorse"),
    ("export HF_TOKEN='{}'", "pass phrase"),
    ('{{"ANTHROPIC_API_KEY": "{}"}}', "plainword"),
    ('{{\\"GEMINI_API_KEY\\": \\"{}\\"}}', "plainword"),
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE1"),
    ("https://host.example/x?access_token={}&y=1", MIXED),
    ("Authorization: Bearer {}", MIXED),
    ("authorization: Basic {}", "dXNlcjpodW50ZXIy"),
    ("x-api-key: {}", "abcdefghijklmnop"),
    ("git clone https://someone:{}@host.example/repo.git", "hunter2"),
    ("postgresql://app:{}@localhost:5432/db", "p%40ss:w"),
]

NEAR_MISSES = [
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 5e9346a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6",
    "--hash=sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "Collecting scikit-learn==1.5.2 sk-video-utils-for-python3-extras",
    "task-scheduler-for-large-clusters-2024-Edition",
    "hf_hub_download(repo_id='org/model-with-a-long-name-1B')",
    "MAX_TOKENS=4096 TOKENIZERS_PARALLELISM=false",
    "OPENAI_API_KEY=$OPENAI_API_KEY",
    'export HF_TOKEN="${HF_TOKEN:-none}"',
    "OPENAI_API_KEY=",
    "token = strtok(buffer, delimiters)",
    "password: Optional[str] = None",
    "api_key=os.environ['OPENAI_API_KEY']",
    "the bearer of this letter-of-recommendation",
    "https://host.example:8443/path@2",
    "git@host.example:group/repo.git",
    "-----BEGIN CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBWd0NUVR agent@machine",
    "-----BEGIN PRIVATE KEY----- is how such a file begins",
    "AIzaShort xai-grok hf_short ghp_short AKIASHORT",
]


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("frame", ["{}", "before {} after", "key={},", '"{}"', "<{}>\n"])
def test_a_key_goes_and_its_surroundings_stay(name: str, frame: str) -> None:
    clean = redact(frame.format(KEYS[name]))
    before, _, after = frame.partition("{}")
    assert clean.startswith(before)
    assert clean.endswith(after)
    assert "[redacted:" in clean
    assert MIXED[4:20] not in clean
    assert KEYS[name][8:] not in clean


@pytest.mark.parametrize(("frame", "value"), ASSIGNED)
def test_what_is_assigned_to_a_secret_name_goes(frame: str, value: str) -> None:
    clean = redact(frame.format(value))
    assert value not in clean
    assert clean.startswith(frame.format("").partition("=")[0][:10])
    assert "[redacted:" in clean


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_near_misses_stay(text: str) -> None:
    assert redact(text) == text


def test_a_key_that_the_log_cut_off_goes_as_far_as_it_stands() -> None:
    cut = pem("OPENSSH ").partition("==")[0]
    assert redact(cut + "\nNext line of the log") == "[redacted:private-key]\nNext line of the log"


@pytest.mark.parametrize("secret", ["s3cr+t/é!", "hunter2hunter2", "a b&c=d/e?f", "four"])
def test_an_explicit_secret_goes_in_every_form(secret: str) -> None:
    data = secret.encode()
    forms = [secret, quote(secret, safe="")]
    if len(data) >= 8:
        forms += [base64.b64encode(b"x" * pad + data + b"tail").decode() for pad in range(6)]
        forms += [base64.urlsafe_b64encode(b"user:" + data).decode()]
    for form in forms:
        clean = redact(f"<<{form}>>", [secret])
        assert "[redacted]" in clean, form
        assert form not in clean


def test_explicit_secrets_do_not_eat_other_text() -> None:
    assert redact("an example", ["", "an"]) == "an example"
    assert redact("abcdefgh1 abcdefgh", ["abcdefgh", "abcdefgh1"]) == "[redacted] [redacted]"


@pytest.mark.parametrize("text", [*KEYS.values(), *NEAR_MISSES, *(frame.format(value) for frame, value in ASSIGNED)])
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(f"a {text} b", ["hunter2"])
    assert redact(once, ["hunter2"]) == once


@pytest.mark.parametrize(("words", "pattern"), [row[1:] for row in PATTERNS], ids=[kind for kind, *_ in PATTERNS])
def test_patterns_nest_no_quantifiers_and_match_only_where_one_of_their_words_stands(words: str, pattern: str) -> None:
    assert nested_quantifiers(pattern) == []
    texts = [*KEYS.values(), *(frame.format(value) for frame, value in ASSIGNED)]
    matched = [text for text in texts if re.search(pattern, text)]
    assert all(any(word in text.casefold() for word in words.split()) for text in matched)


@pytest.mark.timeout(60)  # a guard: what does not backtrack needs well under a second
@pytest.mark.parametrize("line", HOSTILE_LINES, ids=lambda line: repr(line[:12]))
def test_hostile_lines_come_through(line: str) -> None:
    redact(line)
    printable(line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m \x1b[2J\x1b[10;20H", "red "),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2\x1b\\after", "after"),
        ("\x1b]0;never ended, yet shown", "\\x1b]0;never ended, yet shown"),
        ("\x9b31mred", "red"),
        ("lone \x1b", "lone \\x1b"),
        ("\x1bcreset", "reset"),
        ("bell\x07 nul\x00 del\x7f", "bell\\x07 nul\\x00 del\\x7f"),
        ("progress\rdone\r\nnext\ttab", "progress\\x0ddone\nnext\ttab"),
        ("half \ud83d pair", "half \\ud83d pair"),
        ("admin\u202etxt.exe \u2066x", "admin\\u202etxt.exe \\u2066x"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("two\u2028lines", "two\\u2028lines"),
        ("grüße, 世界 → ✓ 😀", "grüße, 世界 → ✓ 😀"),
    ],
)
def test_hostile_text_is_harmless_to_show(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_no_character_of_unicode_gets_through_that_could_act() -> None:
    everything = "".join(map(chr, range(0x110000)))
    left = {unicodedata.category(char) for char in set(printable(everything)) - {"\n", "\t"}}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_strip_escapes_leaves_other_control_characters() -> None:
    assert strip_escapes("10%\r\x1b[32m20%\x1b[0m\r") == "10%\r20%\r"
