"""What a model's name means, which key it needs, and what is said when either cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_deploybench.errors import UsageError
from pytest_deploybench.models import Dialect, Price, Rates
from pytest_deploybench.models.catalogue import Catalogue, keys, user_file

Reader = Callable[[str], Catalogue]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Reads a models.yaml of this content."""

    def read(text: str) -> Catalogue:
        file = tmp_path / "models.yaml"
        file.write_text(text, encoding="utf-8")
        return Catalogue.read(file)

    return read


@pytest.fixture
def known(tmp_path: Path) -> Catalogue:
    """The models of the package alone."""
    return Catalogue.read(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpt-5.3-codex", ("openai", "gpt-5.3-codex", Dialect.RESPONSES, "OPENAI_API_KEY")),
        ("gpt-5.4-mini", ("openai", "gpt-5.4-mini", Dialect.RESPONSES, "OPENAI_API_KEY")),
        ("gemini-3.1-pro", ("gemini", "gemini-3.1-pro-preview", Dialect.GENERATE_CONTENT, "GEMINI_API_KEY")),
        ("grok-4.20", ("xai", "grok-4.20", Dialect.CHAT, "XAI_API_KEY")),
    ],
)
def test_the_models_of_the_paper_have_provider_key_and_dated_price(
    known: Catalogue, name: str, expected: tuple[object, ...]
) -> None:
    spec = known.resolve(name)
    assert spec.alias == name
    assert (spec.provider, spec.upstream, spec.dialects[0], spec.key_env) == expected
    assert spec.base_url.startswith("https://")
    assert spec.price is not None
    assert spec.price.as_of == "2026-11-30"
    assert spec.price.rates.output > spec.price.rates.input > (spec.price.rates.cached_input or 0) > 0
    assert name in known.names


def test_any_other_model_of_a_known_provider_is_named_with_it(known: Catalogue) -> None:
    spec = known.resolve("anthropic/claude-x")
    assert (spec.alias, spec.upstream, spec.key_env) == ("anthropic/claude-x", "claude-x", "ANTHROPIC_API_KEY")
    assert spec.price is None, "an unknown price is not 0"
    local = known.resolve("ollama/qwen3:8b")
    assert (local.key_env, local.base_url) == (None, "http://127.0.0.1:11434/v1")


@pytest.mark.parametrize("name", ["gemini/gemini-3.1-pro", "gemini/gemini-3.1-pro-preview"])
def test_a_known_model_named_with_its_provider_keeps_what_is_known(known: Catalogue, name: str) -> None:
    spec = known.resolve(name)
    assert spec.alias == name
    assert (spec.upstream, spec.price) == ("gemini-3.1-pro-preview", known.resolve("gemini-3.1-pro").price)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5.3-codecs", "unknown model 'gpt-5.3-codecs'. Did you mean 'gpt-5.3-codex'?"),
        ("opena/x", "unknown provider of model 'opena/x'. Did you mean 'openai'?"),
        ("openai/", "unknown provider of model 'openai/'"),
    ],
)
def test_an_unknown_name_lists_what_there_is_and_where_to_add(
    known: Catalogue, tmp_path: Path, name: str, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        known.resolve(name)
    said = str(caught.value)
    assert words in said
    assert "gemini-3.1-pro, gpt-5.3-codex" in said
    assert "ollama, openai" in said
    assert str(tmp_path / "missing.yaml") in said


def test_another_base_url_gets_no_key_and_has_no_price(known: Catalogue) -> None:
    spec = known.resolve("gpt-5.4-mini", base_url="http://127.0.0.1:9000/v1/")
    assert (spec.base_url, spec.key_env, spec.price) == ("http://127.0.0.1:9000/v1", None, None)
    assert spec.upstream == "gpt-5.4-mini"
    with pytest.raises(UsageError, match=r"'localhost:9' of model 'grok-4.20' is none\. Give the API's address"):
        known.resolve("grok-4.20", base_url="localhost:9")


def test_the_users_file_adds_providers_and_models(read: Reader) -> None:
    models = read(
        """
        as_of: 2026-10-01
        providers:
          lab: {base_url: "http://10.0.0.7:8000/v1/", key_env: LAB_KEY, dialects: [chat, responses]}
        models:
          qwen: {provider: lab, name: Qwen/Qwen3-Coder, price: {input: 0, output: 0.5}}
        """
    )
    spec = models.resolve("qwen")
    assert (spec.upstream, spec.base_url, spec.key_env) == ("Qwen/Qwen3-Coder", "http://10.0.0.7:8000/v1", "LAB_KEY")
    assert spec.price == Price("2026-10-01", Rates(0, 0.5))
    assert models.resolve("lab/Qwen/Qwen3-Coder").price == spec.price
    assert models.resolve("gpt-5.4-mini").key_env == "OPENAI_API_KEY"


def test_the_users_file_overrides_a_price_and_nothing_else(read: Reader) -> None:
    spec = read("models: {gemini-3.1-pro: {price: {input: 1, output: 2, as_of: 2027-01-01}}}").resolve("gemini-3.1-pro")
    assert spec.price == Price("2027-01-01", Rates(1, 2))
    assert (spec.upstream, spec.key_env) == ("gemini-3.1-pro-preview", "GEMINI_API_KEY")


def test_a_model_moved_to_another_place_takes_neither_key_nor_price_along(read: Reader) -> None:
    moved = read("models: {grok-4.20: {base_url: 'https://proxy.example/v1'}}").resolve("grok-4.20")
    assert (moved.base_url, moved.key_env, moved.price) == ("https://proxy.example/v1", None, None)
    named = read("models: {grok-4.20: {base_url: 'https://proxy.example/v1', key_env: PROXY_KEY}}").resolve("grok-4.20")
    assert named.key_env == "PROXY_KEY"
    other = read("models: {grok-4.20: {provider: openrouter, name: x-ai/grok-4.20}}").resolve("grok-4.20")
    assert (other.key_env, other.upstream, other.price) == ("OPENROUTER_API_KEY", "x-ai/grok-4.20", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: [", "line 1: not YAML"),
        ("- a", "file: input should be a valid dictionary"),
        ("modles: {}", "modles: unknown key. Begin with `providers:` or `models:`"),
        ("models: {a: {}}", "models.a.provider: no provider is named. Name one of openai"),
        ("models: {a: {provider: nobody}}", "models.a.provider: there is no provider 'nobody'"),
        ("models: {a: {provider: xai, prise: 1}}", "models.a.prise: unknown key. Give each model a provider"),
        ("models: {a: {provider: xai, price: {input: -1, output: 1}}}", "models.a.price.input"),
        ("models: {a: {provider: xai, price: {input: 1}}}", "models.a.price.output: field required. Give input and"),
        ("models: {a: {provider: xai, key_env: 'sk-not a name'}}", "models.a.key_env"),
        ("models: {a: {provider: xai, dialects: [latin]}}", "Give a list of chat, responses, messages"),
        ("providers: {p: {key_env: null}}", "providers.p.base_url: field required. Give the API's address"),
        ("providers: {p: {base_url: ftp://x, key_env: null}}", "providers.p.base_url"),
    ],
)
def test_a_broken_file_is_named_with_key_and_remedy(read: Reader, tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{tmp_path / 'models.yaml'}: ")
    assert words in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_an_empty_file_and_a_file_that_cannot_be_read(read: Reader, tmp_path: Path) -> None:
    assert "grok-4.20" in read("").names
    with pytest.raises(UsageError, match="cannot be read"):
        Catalogue.read(tmp_path)


def test_keys_are_found_by_the_names_of_their_variables(known: Catalogue) -> None:
    specs = [known.resolve(name) for name in ("gpt-5.3-codex", "gpt-5.4-mini", "ollama/x")]
    assert keys(specs, {"OPENAI_API_KEY": " canary \n", "XAI_API_KEY": "other"}) == {"OPENAI_API_KEY": "canary"}


def test_missing_keys_are_one_error_that_names_them_all(known: Catalogue) -> None:
    specs = [known.resolve(name) for name in ("gpt-5.3-codex", "gpt-5.4-mini", "grok-4.20", "gemini-3.1-pro")]
    with pytest.raises(UsageError) as caught:
        keys(specs, {"GEMINI_API_KEY": "canary", "XAI_API_KEY": "two canaries"})
    said = str(caught.value)
    assert "OPENAI_API_KEY is not set (for gpt-5.3-codex, gpt-5.4-mini)" in said
    assert "XAI_API_KEY is no key (for grok-4.20)" in said
    assert said.endswith("export OPENAI_API_KEY=... XAI_API_KEY=...")
    assert "GEMINI" not in said
    assert "canar" not in said


def test_the_users_file_lies_in_the_config_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_file() == tmp_path / "pytest-deploybench" / "models.yaml"
    user_file().parent.mkdir()
    user_file().write_text("models: {mine: {provider: ollama}}")
    assert "mine" in Catalogue.read().names
