"""Loads the rules of Layer 1 from YAML, checks them and compiles them.

A catalogue file holds the rules of one ecosystem and is named after it (`pip.yaml`, `cmake.yaml`, `kernel.yaml`). It is
a list of entries:

    - id: missing-shared-library        names the finding, not the remedy; unique in the whole catalogue
      role: cause                       optional, `cause` by default; the table below
      category: dependency              one of model.Category; for cause, consequence, context and words, and for
                                        a recovery from a failure that may yet be the cause (category: network)
      kind: shared-library              optional; a finer name within the category, lower-case words joined by hyphens
      patterns: ['...']                 any of these regular expressions, searched in one line
      unless: ['...']                   optional; a line that one of these matches is passed over
      explanation: ...                  what happened, one sentence
      remedy: ...                       what to do about it, one sentence; only for those that have a category
      confidence: 0.95                  0 to 1; from FAILING_CONFIDENCE on, a finding counts against the deployment;
                                        optional (1.0) for the other roles
      samples:
        hits: ['...']                   lines that give this finding and no other
        near_misses: ['...']            lines that look like it and must not give it

A role says what the line tells the judge (layer1/judgment.py):

    cause        a failure that needs no other to explain it: `fatal error: zlib.h: No such file or directory`
    consequence  it only says that something before it failed: `make: *** [all] Error 2`, `Build FAILED`, an exit status
    context      no failure by itself, but of use to a reader
    benign       the line looks like a failure and is none: `0 errors`, `Looking for X - not found`, a test that passes
    recovery     what failed just above was tried again or done without: `Retrying in 5 s`, `falling back to ...`
    success      a tool or a whole run ended well: `BUILD SUCCESSFUL`, `Successfully installed x`, `12 passed in 3 s`
    step         a new step of a script or a pipeline begins, so an earlier one did not stop it: `##[group]Run make`
    words        no line's failure, but what general words in one mean, whoever says it: `... must be at least 3.2`

Two kinds of causes and consequences are read on, because they tell only that something failed:

    heading      what failed stands in the lines below: `* What went wrong:`, `CMake Error at a.cmake:3 (message):`
    unspecific   the rule knows who speaks, not what of: the words in the line tell the category, where they can

What a rule sees is one line as a reader would see it: no colours, the last state of a progress bar, and without the
prefixes that log collectors put in front (times, `#12 3.4`, `[stage 2/5]`, `web_1 |`), so that `^` means what the tool
wrote first. One rule speaks for a line: the most confident that matches; of equals, benign first. So a benign rule
silences exactly what it is at least as sure about.

A pattern must be cheap and must not backtrack without end: no look-behind or back-reference, repetitions bounded
(`[^ ]{1,200}`), and, but for benign rules and words, some text of at least three characters that every match holds:
longer and rarer texts make a quicker reader (layer1/anchors.py looks for them).

Reading the files is the only I/O of Layer 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pytest_deploybench.errors import UsageError
from pytest_deploybench.layer1.anchors import anchors
from pytest_deploybench.model import Category, Role

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import ConfigDict, TypeAdapter

FAILING_CONFIDENCE = 0.5
"""A finding below this is a hint to a reader and fails nothing."""

FINDING_ROLES = frozenset({Role.CAUSE, Role.CONSEQUENCE, Role.CONTEXT})
"""Roles whose lines are reported; the others only help to judge."""

ASKED_ROLES = frozenset({Role.BENIGN, Role.WORDS})
"""Roles whose rules are tried only on lines of which another rule speaks, so that they need no anchors."""

HEADING = "heading"
UNSPECIFIC = "unspecific"
"""The kinds of rules that tell only that something failed; the head of this file explains both."""

SHORTEST_ANCHOR = 3
"""Characters of the text that every match of a pattern must hold."""

_SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"


class CatalogueError(UsageError):
    """A catalogue file is not what the schema asks for; the message names file, rule and key."""

    def __init__(self, file: str, rule: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: rule {rule}: {key}: {problem}. The head of layer1/rules.py shows a whole entry.")
        self.file, self.rule, self.key = file, rule, key


@dataclass(frozen=True)
class Rule:
    """One kind of line, what it tells, and the patterns that give it away."""

    id: str
    ecosystem: str
    patterns: tuple[re.Pattern[str], ...]
    category: Category | None = None
    """None for the roles that are not reported."""
    role: Role = Role.CAUSE
    kind: str = ""
    unless: tuple[re.Pattern[str], ...] = ()
    explanation: str = ""
    remedy: str = ""
    confidence: float = 1.0
    hits: tuple[str, ...] = ()
    near_misses: tuple[str, ...] = ()

    def matches(self, line: str) -> bool:
        """Whether the line is of this kind."""
        for pattern in self.patterns:  # not any(): this is where a long log spends its time
            if pattern.search(line):
                return not any(veto.search(line) for veto in self.unless)
        return False


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Rules with unique ids, the first to speak for a line first."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class _Samples:
    hits: list[str]
    near_misses: list[str]
    __pydantic_config__: ClassVar[ConfigDict] = {"extra": "forbid"}


@dataclass(frozen=True)
class _Entry:
    id: str
    patterns: list[str]
    explanation: str
    samples: _Samples
    category: Category | None = None
    role: Role = Role.CAUSE
    kind: str | None = None
    unless: list[str] = field(default_factory=list)
    remedy: str | None = None
    confidence: float | None = None
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
    return Catalogue(tuple(sorted(rules.values(), key=_precedence)))


def _precedence(rule: Rule) -> tuple[float, bool]:
    return -rule.confidence, rule.role is not Role.BENIGN


def _rules_of(file: str, text: str) -> Iterator[Rule]:
    # yaml and pydantic are imported by who reads a catalogue, not by every pytest run.
    import yaml
    from pydantic import ValidationError

    try:
        entries = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.YAMLError as error:
        raise CatalogueError(file, "(none)", "YAML", " ".join(str(error).split())) from error
    if not isinstance(entries, list):
        raise CatalogueError(file, "(none)", "top level", "a list of rules is expected")
    adapter = _adapter()
    for number, fields in enumerate(entries, start=1):
        name = str(fields.get("id", f"number {number}")) if isinstance(fields, dict) else f"number {number}"
        try:
            entry = adapter.validate_python(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise CatalogueError(file, name, ".".join(map(str, first["loc"])) or "entry", first["msg"]) from error
        yield _rule(file, entry)


@cache
def _adapter() -> TypeAdapter[_Entry]:
    from pydantic import TypeAdapter

    return TypeAdapter(_Entry)


def _rule(file: str, entry: _Entry) -> Rule:
    reported = entry.role in FINDING_ROLES or entry.role is Role.WORDS
    may_have_category = reported or entry.role is Role.RECOVERY
    confidence = 1.0 if entry.confidence is None else entry.confidence
    for key, is_wrong, problem in (
        ("id", not re.fullmatch(_SLUG, entry.id), "lower-case words joined by hyphens are expected"),
        ("kind", not re.fullmatch(_SLUG, entry.kind or "x"), "lower-case words joined by hyphens are expected"),
        ("patterns", not entry.patterns, "at least one is needed"),
        ("explanation", not entry.explanation.strip(), "must say what happened"),
        ("category", reported and entry.category is None, f"a {entry.role} needs one"),
        ("category", entry.category is not None and not may_have_category, f"a {entry.role} has none"),
        ("remedy", reported and not (entry.remedy or "").strip(), "must say what to do"),
        ("confidence", reported and entry.confidence is None, f"a {entry.role} needs one"),
        ("confidence", not 0 < confidence <= 1, "a number above 0 and at most 1 is expected"),
        ("samples.hits", not entry.samples.hits, "at least one line is needed"),
        ("samples.near_misses", not entry.samples.near_misses, "at least one line is needed"),
    ):
        if is_wrong:
            raise CatalogueError(file, entry.id, key, problem)
    return Rule(
        id=entry.id,
        ecosystem=file.removesuffix(".yaml"),
        category=entry.category,
        role=entry.role,
        kind=entry.kind or "",
        patterns=_compiled(file, entry.id, "patterns", entry.patterns, anchored=entry.role not in ASKED_ROLES),
        unless=_compiled(file, entry.id, "unless", entry.unless, anchored=False),
        explanation=entry.explanation.strip(),
        remedy=(entry.remedy or "").strip(),
        confidence=confidence,
        hits=tuple(entry.samples.hits),
        near_misses=tuple(entry.samples.near_misses),
    )


def _compiled(file: str, rule: str, key: str, patterns: list[str], *, anchored: bool) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for number, pattern in enumerate(patterns):
        try:
            compiled.append(re.compile(pattern))
            needs_anchor = anchored and min(map(len, anchors(pattern))) < SHORTEST_ANCHOR
        except re.error as error:
            raise CatalogueError(file, rule, f"{key}.{number}", f"{pattern!r} does not compile ({error})") from error
        if needs_anchor:
            problem = f"{pattern!r} can match a line that holds none of a few texts of {SHORTEST_ANCHOR} characters"
            raise CatalogueError(file, rule, f"{key}.{number}", f"{problem}, so every line would have to be tried")
    return tuple(compiled)
