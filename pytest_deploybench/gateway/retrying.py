"""Decides what an answer of the provider means: hand it on, try again, or give the provider up; and when to try again.

Promises a reviewer can check: pure; the model's own refusals (a context that is too long, a malformed tool) are handed
on and cost the agent, not the trial; a provider is given up only for what no request of an agent brings about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any


class Meaning(StrEnum):
    """What is to be done with an answer."""

    HAND_ON = "hand_on"
    RETRY = "retry"
    GIVE_UP = "give_up"


_REFUSES_US = frozenset({401, 402})
"""Wrong key, no money."""
_REFUSES_THE_MODEL = frozenset({403, 404})
"""A model that this key may not use, or that is not there; once it has answered, such a status has another cause."""
_PASSING = frozenset({408, 409, 425, 429})
"""Beside all of 5xx."""
_OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "API_KEY_INVALID", "invalid_api_key"})
"""Codes of errors under other statuses."""
_FAULTS = frozenset(
    {
        "api_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "INTERNAL",
        "RESOURCE_EXHAUSTED",
        "UNAVAILABLE",
    }
)
"""What errors within a stream are called that began well."""
_NO_CREDIT = "Your credit balance is too low"
"""Anthropic has no code for it."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long to be patient with a provider in one call."""

    patience_s: float = 600.0
    """Longest time from the first fault to the last further try."""
    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    """Longest pause of our own choice; a provider may ask for a longer one."""
    cut_streams: int = 4
    """Streams broken off in a row after which the provider is down: they cannot be tried again in secret."""

    def pause_s(self, failures: int, spent_s: float, asked_s: float | None, spread: float) -> float | None:
        """How long to wait before the next try; None to give up.

        Args:
            failures: tries so far, at least 1.
            spent_s: time since the first fault.
            asked_s: what the provider asked for.
            spread: a random number in [0, 1], so that many trials do not come back at the same moment.
        """
        own = min(self.longest_pause_s, self.first_pause_s * 2 ** min(failures - 1, 30)) * (0.75 + 0.5 * spread)
        pause = own if asked_s is None else asked_s + self.first_pause_s * spread
        return pause if spent_s + pause <= self.patience_s else None


def meaning(status: int, body: bytes, *, answered_before: bool) -> Meaning:
    """What a status and its body mean; `answered_before` tells that this model has answered this trial already."""
    if status < 300:
        return Meaning.HAND_ON
    if status < 400:  # followed, a redirect would take the key to another place
        return Meaning.GIVE_UP
    error = _error(body)
    codes = _codes(error) | _reasons(error)
    if status in _REFUSES_US or codes & _OUT_OF_MONEY or str(error.get("message", "")).startswith(_NO_CREDIT):
        return Meaning.GIVE_UP
    if status in _REFUSES_THE_MODEL and not answered_before:
        return Meaning.GIVE_UP
    return Meaning.RETRY if status in _PASSING or status >= 500 else Meaning.HAND_ON


def asked_pause_s(headers: Mapping[str, str], body: bytes, now: datetime) -> float | None:
    """How long the provider asks to wait, by its headers or, with Google, by its body."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if value:
            seconds = _number(value)
            return _until(value, now) if seconds is None else seconds * scale
    delays = [detail.get("retryDelay") for detail in _details(_error(body))]
    return next((_number(delay.removesuffix("s")) for delay in delays if isinstance(delay, str)), None)


def is_providers_fault(error: object) -> bool:
    """Whether the error within an answer of status 200 is the provider's, not one that the request brought about."""
    return isinstance(error, dict) and not _FAULTS.isdisjoint(_codes(error))


def summary(status: int, body: bytes) -> str:
    """A provider's error in one line."""
    message = _error(body).get("message")
    return f"HTTP {status}" + (f": {' '.join(str(message).split())[:300]}" if message else "")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None


def _until(text: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _error(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(value, list) and value:  # Google wraps the errors of streams in an array
        value = value[0]
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else {}


def _codes(error: Mapping[str, Any]) -> set[str]:
    return {text for key in ("code", "type", "status") if isinstance(text := error.get(key), str)}


def _details(error: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = error.get("details")
    return [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []


def _reasons(error: Mapping[str, Any]) -> set[str]:
    return {detail["reason"] for detail in _details(error) if isinstance(detail.get("reason"), str)}
