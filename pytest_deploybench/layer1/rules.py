"""Loads the rules of Layer 1 from YAML, checks them and compiles them.

A catalogue file is a list of entries:

    - id: missing-shared-library        names the finding, not the remedy
      category: dependency              one of model.Category; also the name of the file
      patterns: ['...']                 any of these regular expressions, searched in one line
      unless: ['...']                   optional; a line that one of these matches is passed over
      explanation: ...                  what happened, one sentence
      remedy: ...                       what to do about it, one sentence
      confidence: 0.95                  0 to 1; from FAILING_CONFIDENCE on, a finding counts against the deployment
      samples:
        hits: ['...']                   lines that give this finding and no other
        near_misses: ['...']            lines that look like it and must not give it

Reading the files is the only I/O of Layer 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar

from pytest_deploybench.errors import UsageError
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.model import Category

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import ConfigDict

FAILING_CONFIDENCE = 0.5
"""A finding below this is a hint to a reader and fails nothing."""


class CatalogueError(UsageError):
    """A catalogue file is not what the schema asks for; the message names file, rule and key."""

    def __init__(self, file: str, rule: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: rule {rule}: {key}: {problem}. The head of layer1/rules.py shows a whole entry.")
        self.file, self.rule, self.key = file, rule, key


@dataclass(frozen=True)
class Rule:
    """One kind of failure, and the lines that give it away."""

    id: str
    category: Category
    patterns: tuple[re.Pattern[str], ...]
    unless: tuple[re.Pattern[str], ...]
    explanation: str
    remedy: str
    confidence: float
    hits: tuple[str, ...]
    near_misses: tuple[str, ...]

    def matches(self, line: str) -> bool:
        """Whether the line gives this finding."""
        return any(pattern.search(line) for pattern in self.patterns) and not any(
            pattern.search(line) for pattern in self.unless
        )


@dataclass(frozen=True)
class Catalogue:
    """Rules with unique ids, the most confident first; equally confident ones in the order of their files."""

    rules: tuple[Rule, ...]

    def first_match(self, line: str) -> Rule | None:
        """The most confident rule that speaks for this line."""
        if not any(map(line.lower().__contains__, self._anchors)):
            return None
        return next((rule for rule in self.rules if rule.matches(line)), None)

    @cached_property
    def _anchors(self) -> tuple[str, ...]:
        return tuple(sorted(set().union(*(anchors(p.pattern) for rule in self.rules for p in rule.patterns))))


@dataclass(frozen=True)
class _Samples:
    hits: list[str]
    near_misses: list[str]
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}


@dataclass(frozen=True)
class _Entry:
    id: str
    category: Category
    patterns: list[str]
    explanation: str
    remedy: str
    confidence: float
    samples: _Samples
    unless: list[str] | None = None
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}


@cache
def load_catalogue() -> Catalogue:
    """The rules that come with the package.

    Raises:
        CatalogueError: a file is damaged.
    """
    from importlib.resources import files

    return read_catalogue(files(__package__) / "catalogue")


def read_catalogue(folder: Traversable) -> Catalogue:
    """The rules of all `*.yaml` files of a folder.

    Raises:
        CatalogueError: an entry breaks the schema, a pattern does not compile, or an id stands twice.
    """
    rules: dict[str, Rule] = {}
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".yaml"):
            continue
        for rule in _rules_of(file.name, file.read_text(encoding="utf-8")):
            if rule.id in rules:
                raise CatalogueError(file.name, rule.id, "id", "stands twice in the catalogue")
            rules[rule.id] = rule
    return Catalogue(tuple(sorted(rules.values(), key=lambda rule: -rule.confidence)))


def _rules_of(file: str, text: str) -> Iterator[Rule]:
    # yaml and pydantic are imported by who reads a catalogue, not by every pytest run.
    import yaml
    from pydantic import TypeAdapter, ValidationError

    try:
        entries = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CatalogueError(file, "(none)", "YAML", " ".join(str(error).split())) from error
    if not isinstance(entries, list):
        raise CatalogueError(file, "(none)", "top level", "a list of rules is expected")
    adapter = TypeAdapter(_Entry)
    for number, fields in enumerate(entries, start=1):
        name = str(fields.get("id", f"number {number}")) if isinstance(fields, dict) else f"number {number}"
        try:
            entry = adapter.validate_python(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise CatalogueError(file, name, ".".join(map(str, first["loc"])) or "entry", first["msg"]) from error
        yield _rule(file, entry)


def _rule(file: str, entry: _Entry) -> Rule:
    for key, is_wrong, problem in (
        (
            "id",
            not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.id),
            "lower-case words joined by hyphens are expected",
        ),
        ("patterns", not entry.patterns, "at least one is needed"),
        ("explanation", not entry.explanation.strip(), "must say what happened"),
        ("remedy", not entry.remedy.strip(), "must say what to do"),
        ("confidence", not 0 < entry.confidence <= 1, "a number above 0 and at most 1 is expected"),
        ("samples.hits", not entry.samples.hits, "at least one line is needed"),
        ("samples.near_misses", not entry.samples.near_misses, "at least one line is needed"),
    ):
        if is_wrong:
            raise CatalogueError(file, entry.id, key, problem)
    return Rule(
        id=entry.id,
        category=entry.category,
        patterns=_compiled(file, entry.id, "patterns", entry.patterns),
        unless=_compiled(file, entry.id, "unless", entry.unless or []),
        explanation=entry.explanation.strip(),
        remedy=entry.remedy.strip(),
        confidence=entry.confidence,
        hits=tuple(entry.samples.hits),
        near_misses=tuple(entry.samples.near_misses),
    )


def _compiled(file: str, rule: str, key: str, patterns: list[str]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for number, pattern in enumerate(patterns):
        try:
            compiled.append(re.compile(pattern))
        except re.error as error:
            raise CatalogueError(file, rule, f"{key}.{number}", f"{pattern!r} does not compile ({error})") from error
    return tuple(compiled)
