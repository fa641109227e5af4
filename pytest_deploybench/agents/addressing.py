"""How litellm, which both OpenHands and mini-swe-agent ask models through, names a model behind the gateway. Pure."""

from __future__ import annotations

from pytest_deploybench.model import Brief

_ROUTES = {
    "chat": ("openai", "/v1"),
    "responses": ("openai", "/v1"),
    "messages": ("anthropic", ""),
    "generate_content": ("gemini", ""),
}
"""By dialect: litellm's name of the provider that speaks it, and what of its path litellm wants to be told."""

_KNOWN_APART = frozenset({"xai"})
"""Providers that speak OpenAI's dialect and that litellm knows by their own name, with their own peculiarities."""


def litellm_name(brief: Brief) -> str:
    """The name that makes litellm speak the model's dialect."""
    speaker, _ = _ROUTES[brief.dialect]
    return f"{brief.provider if brief.provider in _KNOWN_APART else speaker}/{brief.upstream}"


def base_url(brief: Brief) -> str:
    """The gateway as litellm wants to be told of it."""
    return brief.url + _ROUTES[brief.dialect][1]
