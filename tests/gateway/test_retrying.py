"""What a provider's answer means for the trial, and how long to wait for the next."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from pytest_deploybench.gateway.retrying import (
    Meaning,
    RetryPolicy,
    asked_pause_s,
    is_providers_fault,
    meaning,
    summary,
)

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def error(**fields: Any) -> bytes:
    return json.dumps({"error": fields}).encode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b"{}", Meaning.HAND_ON),
        (302, b"", Meaning.GIVE_UP),
        (400, error(message="context too long", code="context_length_exceeded"), Meaning.HAND_ON),
        (422, b"no", Meaning.HAND_ON),
        (413, b"[[[", Meaning.HAND_ON),
        (429, error(code="rate_limit_exceeded"), Meaning.RETRY),
        (429, error(code="insufficient_quota"), Meaning.GIVE_UP),
        (429, error(type="insufficient_quota"), Meaning.GIVE_UP),
        (408, b"", Meaning.RETRY),
        (500, b"", Meaning.RETRY),
        (503, error(status="UNAVAILABLE"), Meaning.RETRY),
        (529, error(type="overloaded_error"), Meaning.RETRY),
        (401, b"", Meaning.GIVE_UP),
        (402, b"", Meaning.GIVE_UP),
        (400, error(status="INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}]), Meaning.GIVE_UP),
        (400, error(message="Your credit balance is too low to access the API"), Meaning.GIVE_UP),
        (400, error(message="say: insufficient_quota", code=["insufficient_quota"]), Meaning.HAND_ON),
    ],
)
@pytest.mark.parametrize("answered", [False, True])
def test_a_status_means_the_same_before_and_after_the_first_answer(
    status: int, body: bytes, expected: Meaning, answered: bool
) -> None:
    assert meaning(status, body, answered_before=answered) is expected


@pytest.mark.parametrize("status", [403, 404])
def test_a_model_that_has_answered_is_there_and_allowed(status: int) -> None:
    """Else an agent that asks for something that is not there could call off a trial that it is about to lose."""
    assert meaning(status, error(code="model_not_found"), answered_before=False) is Meaning.GIVE_UP
    assert meaning(status, error(code="previous_response_not_found"), answered_before=True) is Meaning.HAND_ON


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ({}, b"", None),
        ({"retry-after": "7"}, b"", 7.0),
        ({"retry-after": "0"}, b"", 0.0),
        ({"retry-after": "1.5"}, b"", 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, b"", 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:30 GMT"}, b"", 30.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:30 GMT"}, b"", 0.0),
        ({"retry-after": "soon"}, b"", None),
        ({"retry-after": "-3"}, b"", None),
        ({"retry-after": "nan"}, b"", None),
        ({}, error(details=[{"@type": "x"}, {"retryDelay": "34s"}]), 34.0),
        ({}, b'[{"error": {"details": [{"retryDelay": "2.5s"}]}}]', 2.5),
        ({}, error(details="none"), None),
    ],
)
def test_a_provider_may_ask_for_a_pause(headers: dict[str, str], body: bytes, expected: float | None) -> None:
    assert asked_pause_s(headers, body, NOW) == expected


def test_own_pauses_double_up_to_the_longest_and_end_with_patience() -> None:
    policy = RetryPolicy(patience_s=100.0, first_pause_s=1.0, longest_pause_s=20.0)
    pauses = [policy.pause_s(failures, 0.0, None, 0.5) for failures in (1, 2, 3, 5, 6, 1000)]
    assert pauses == [1.0, 2.0, 4.0, 16.0, 20.0, 20.0]
    assert policy.pause_s(6, 79.0, None, 0.5) == 20.0
    assert policy.pause_s(6, 81.0, None, 0.5) is None


def test_many_trials_do_not_come_back_at_the_same_moment() -> None:
    policy = RetryPolicy(first_pause_s=2.0)
    assert (policy.pause_s(1, 0.0, None, 0.0), policy.pause_s(1, 0.0, None, 1.0)) == (1.5, 2.5)
    assert (policy.pause_s(1, 0.0, 30.0, 0.0), policy.pause_s(1, 0.0, 30.0, 1.0)) == (30.0, 32.0)


def test_a_pause_beyond_patience_is_not_begun() -> None:
    policy = RetryPolicy(patience_s=60.0)
    assert policy.pause_s(1, 0.0, 59.0, 0.0) == 59.0
    assert policy.pause_s(1, 0.0, 3600.0, 0.0) is None


def test_faults_within_a_stream_are_told_from_what_the_request_brought_about() -> None:
    assert is_providers_fault({"type": "overloaded_error"})
    assert is_providers_fault({"code": 503, "status": "UNAVAILABLE"})
    assert not is_providers_fault({"code": "invalid_prompt"})
    assert not is_providers_fault("server_error")
    assert not is_providers_fault(None)


def test_an_error_is_one_bounded_line() -> None:
    assert summary(500, error(message="a\n  b")) == "HTTP 500: a b"
    assert summary(502, b"<html>") == "HTTP 502"
    assert summary(400, b'{"error": "plain"}') == "HTTP 400: plain"
    assert len(summary(500, error(message="x" * 10_000))) < 400
