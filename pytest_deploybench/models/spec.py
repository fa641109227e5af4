"""The nouns of models and their prices. Standard library only; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Dialect(StrEnum):
    """The four languages in which models are asked."""

    CHAT = "chat"
    """OpenAI's chat completions; also spoken by xAI, vLLM, Ollama and most others."""
    RESPONSES = "responses"
    """OpenAI's responses."""
    MESSAGES = "messages"
    """Anthropic's messages."""
    GENERATE_CONTENT = "generate_content"
    """Google's generateContent and streamGenerateContent."""


@dataclass(frozen=True)
class Rates:
    """US dollars for a million tokens."""

    input: float
    output: float
    """Reasoning included: every provider bills it as output."""
    cached_input: float | None = None
    """Read from the provider's cache; None where that costs the same as other input."""
    cache_write: float | None = None
    """Written to the provider's cache; None where that costs the same as other input."""


@dataclass(frozen=True)
class Price:
    """What a model costs. There is no price of 0 for "unknown": that is None in place of a Price."""

    as_of: str | None
    """The day on which the price was looked up, ISO 8601; None where its author did not say."""
    rates: Rates
    long_from: int | None = None
    """Input tokens of one call from which on `long_rates` hold for all of its tokens."""
    long_rates: Rates | None = None


@dataclass(frozen=True)
class ModelSpec:
    """A model as the user named it, and how to reach it."""

    alias: str
    """The name on the command line and in reports."""
    provider: str
    """Who serves it, for example `openai`; the first half of litellm's name for it."""
    upstream: str
    """The name that the provider knows."""
    dialects: tuple[Dialect, ...]
    """What it is asked in; the first is the usual one."""
    base_url: str
    """Without a slash at the end, up to and including the API's version."""
    key_env: str | None
    """Name of the environment variable that holds the key; None for a server that needs none."""
    price: Price | None = None
    """None when unknown: then no cost is reported."""

    @property
    def names(self) -> frozenset[str]:
        """All names under which a request may ask for it."""
        bare = {self.alias, self.upstream}
        return frozenset(bare | {f"{self.provider}/{name}" for name in bare})
