"""Resolves the names of models: known.yaml of this package, then the user's models.yaml, which adds and overrides.

Promises a reviewer can check: whatever a person may get wrong here is a `UsageError` that names the file and the key,
or the variable to set; a key is looked up by name only, and its value stands in no message.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from pytest_deploybench.errors import UsageError
from pytest_deploybench.models.spec import Dialect, ModelSpec, Price, Rates

FILENAME = "models.yaml"

_Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")]
_Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/+@-]*$")]
_Dialects = Annotated[tuple[Dialect, ...], Field(min_length=1)]
_Dollars = Annotated[float, Field(ge=0)]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _RatesForm(_Form):
    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None

    def rates(self) -> Rates:
        return Rates(self.input, self.output, self.cached_input, self.cache_write)


class _LongForm(_RatesForm):
    from_: Annotated[int, Field(alias="from", gt=0)]


class _PriceForm(_RatesForm):
    as_of: date | None = None
    long: _LongForm | None = None


class _ProviderForm(_Form):
    base_url: _Url
    key_env: _Variable | None
    dialects: _Dialects = (Dialect.CHAT,)


class _ModelForm(_Form):
    provider: str | None = None
    name: _Name | None = None
    dialects: _Dialects | None = None
    base_url: _Url | None = None
    key_env: _Variable | None = None
    price: _PriceForm | None = None


class _FileForm(_Form):
    as_of: date | None = None
    providers: dict[_Name, _ProviderForm] = {}
    models: dict[_Name, _ModelForm] = {}


_REMEDIES = (
    (r"base_url$", "Give the API's address with its version, for example http://127.0.0.1:8000/v1."),
    (r"key_env$", "Name the environment variable that holds the key, or write null if the server needs none."),
    (r"dialects", f"Give a list of {', '.join(Dialect)}; the usual one first."),
    (r"long\.from$", "Give the number of input tokens from which on these rates hold, for example 200000."),
    (r"as_of$", "Give the day on which the prices were looked up, for example 2026-11-30."),
    (r"price", "Give input and output, and where they differ cached_input and cache_write, in US dollars for a "
     "million tokens; leave price out when it is unknown."),
    (r"^providers", "Give each provider base_url, key_env and dialects."),
    (r"^models", "Give each model a provider, and name, dialects, base_url, key_env or price where they differ."),
    (r"", "Begin with `providers:` or `models:`."),
)  # fmt: skip
"""How to mend a key: the first pattern that fits."""


def user_file() -> Path:
    """Where the user's own models stand."""
    import platformdirs

    return platformdirs.user_config_path("pytest-deploybench") / FILENAME


class Catalogue:
    """All models that can be named."""

    def __init__(self, file: Path, providers: Mapping[str, _ProviderForm], models: Mapping[str, ModelSpec]) -> None:
        self._file = file
        self._providers = providers
        self._models = models

    @classmethod
    def read(cls, file: Path | None = None) -> Catalogue:
        """The package's own models and those of the user's file, by default `user_file()`, if it exists.

        Raises:
            UsageError: the file cannot be used.
        """
        file = file or user_file()
        ours, theirs = _known(), _parsed(file)
        providers = {**ours.providers, **theirs.providers}
        forms = {name: _merged(ours.models.get(name), theirs.models.get(name)) for name in ours.models | theirs.models}
        models = {}
        for name, form in forms.items():
            given = form.provider
            if given not in providers:
                problem = "no provider is named" if given is None else f"there is no provider {given!r}"
                remedy = f"Name one of {', '.join(providers)}, or describe it under `providers`."
                raise UsageError(f"{file}: models.{name}.provider: {problem}. {remedy}")
            models[name] = _spec(name, given, form, providers[given])
        return cls(file, providers, models)

    @property
    def names(self) -> list[str]:
        """The names that stand for a model on their own, sorted; beside them, any `provider/name` can be used."""
        return sorted(self._models)

    def resolve(self, name: str, base_url: str | None = None) -> ModelSpec:
        """What a name means.

        Args:
            name: one of `names`, or `provider/name` for any other model of a known provider.
            base_url: another server that serves it. It is not given the provider's key: a key goes only to the place
                that the catalogue names for it.

        Raises:
            UsageError: nothing of that name; the message lists what there is.
        """
        spec = self._models.get(name) or self._by_provider(name)
        if base_url is None:
            return spec
        try:
            form = _ModelForm(provider=spec.provider, base_url=base_url)
        except ValidationError:
            raise UsageError(f"base URL {base_url!r} of model {name!r} is none. {_remedy('base_url')}") from None
        return _spec(name, spec.provider, form, self._providers[spec.provider], spec)

    def _by_provider(self, name: str) -> ModelSpec:
        provider, slash, upstream = name.partition("/")
        if provider in self._providers and upstream:
            listed = [spec for spec in self._models.values() if upstream in (spec.alias, spec.upstream)]
            known = next((spec for spec in listed if spec.provider == provider), None)
            if known:
                return replace(known, alias=name)
            return _spec(name, provider, _ModelForm(name=upstream), self._providers[provider])
        near = difflib.get_close_matches(provider if slash else name, self._providers if slash else self._models, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"unknown {'provider of model' if slash else 'model'} {name!r}.{hint} "
            f"Known models: {', '.join(self.names)}; or PROVIDER/NAME with one of the providers "
            f"{', '.join(sorted(self._providers))}. Add others to {self._file}."
        )


def keys(specs: Iterable[ModelSpec], environment: Mapping[str, str]) -> dict[str, str]:
    """The keys of these models, by the name of their variable.

    Raises:
        UsageError: some are missing or cannot be keys; one message for all of them.
    """
    found: dict[str, str] = {}
    wrong: dict[tuple[str, str], list[str]] = {}
    for spec in specs:
        if spec.key_env is None:
            continue
        key = environment.get(spec.key_env, "").strip()
        if key and key.isascii() and key.isprintable() and " " not in key:
            found[spec.key_env] = key
        else:
            problem = "is no key" if key else "is not set"
            wrong.setdefault((spec.key_env, problem), []).append(spec.alias)
    if wrong:
        each = "; ".join(f"{name} {problem} (for {', '.join(models)})" for (name, problem), models in wrong.items())
        exports = " ".join(f"{name}=..." for name, _ in wrong)
        raise UsageError(f"no model can be asked without a key: {each}. Set it in the environment: export {exports}")
    return found


@cache
def _known() -> _FileForm:
    text = files("pytest_deploybench.models").joinpath("known.yaml").read_text(encoding="utf-8")
    return _dated(_FileForm.model_validate(yaml.safe_load(text)))


def _parsed(file: Path) -> _FileForm:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return _FileForm()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}. Make it a readable file in UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "file"
        problem = getattr(error, "problem", None) or "broken"
        raise UsageError(f"{file}: {where}: not YAML: {problem}. Mend the YAML there.") from None
    try:
        return _dated(_FileForm.model_validate({} if content is None else content))
    except ValidationError as error:
        # Unknown keys come first: a misspelt key is the cause of the missing one that is reported beside it.
        first = min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"]) or "file"
        problem = "unknown key" if first["type"] == "extra_forbidden" else first["msg"][:1].lower() + first["msg"][1:]
        raise UsageError(f"{file}: {key}: {problem}. {_remedy(key)}") from None


def _remedy(key: str) -> str:
    return next(remedy for pattern, remedy in _REMEDIES if re.search(pattern, key))


def _merged(ours: _ModelForm | None, theirs: _ModelForm | None) -> _ModelForm:
    if ours is None or theirs is None:
        return ours or theirs or _ModelForm()
    given: dict[str, Any] = {name: getattr(theirs, name) for name in theirs.model_fields_set}
    if theirs.provider not in (None, ours.provider):
        return theirs  # what belongs to our provider does not hold at another one
    if "base_url" in given:
        ours = ours.model_copy(update={"price": None})
    return ours.model_copy(update=given)


def _dated(file: _FileForm) -> _FileForm:
    """The form with the file's date on every price that has none of its own."""
    models = {
        name: form.model_copy(update={"price": form.price.model_copy(update={"as_of": form.price.as_of or file.as_of})})
        if form.price
        else form
        for name, form in file.models.items()
    }
    return file.model_copy(update={"models": models})


def _price(form: _PriceForm | None) -> Price | None:
    if form is None:
        return None
    as_of = form.as_of.isoformat() if form.as_of else None
    if form.long is None:
        return Price(as_of, form.rates())
    return Price(as_of, form.rates(), form.long.from_, form.long.rates())


def _spec(alias: str, provider: str, form: _ModelForm, at: _ProviderForm, known: ModelSpec | None = None) -> ModelSpec:
    """The spec by what the form says, else what is known of the model, else what holds for its provider."""
    elsewhere = form.base_url is not None and form.base_url != at.base_url
    return ModelSpec(
        alias=alias,
        provider=provider,
        upstream=form.name or (known.upstream if known else alias),
        dialects=form.dialects or (known.dialects if known else at.dialects),
        base_url=(form.base_url or at.base_url).rstrip("/"),
        # The provider's key is not for another server, unless the user says so by naming it.
        key_env=form.key_env if elsewhere or "key_env" in form.model_fields_set else at.key_env,
        price=_price(form.price),
    )
