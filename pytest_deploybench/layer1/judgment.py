"""Decides from what was seen in a log whether the run failed, and which line the rest follows from.

The order of the tables and functions below is the order of the thought:

1. What was done again or done without (`recovery`) is no failure; of it remains a suspicion.
2. What a tool's good end (`success`) comes after is settled; what ends a job (`kind: exit`) is settled by nothing. The
   last words of a program (`kind: closing`) settle only the exceptions that it printed and outlived; a bare `done`
   right below one is a script's, which says so whatever became of the program.
3. Of the failures that are left, those count that stand in the step which broke off, and best those that something
   else was seen to follow from.
4. Of these the earliest that is about as sure as the surest is the root, or a much surer line just below it: that one
   says what the first only announces (`throw err;`, then `Error: Cannot find module 'x'`). Below a heading
   (`kind: heading`) any line will do that says what failed, and if it is only in general words. A line that ends with
   a colon leaves it to the next, and one with `Caused by:` below to what stands there.

Promises a reviewer can check: pure; no rule is asked again here; every number that weighs is named at the top.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from pytest_deploybench.layer1.rules import FAILING_CONFIDENCE, FINDING_ROLES, HEADING, UNSPECIFIC, Rule
from pytest_deploybench.model import Category, Finding, Role

EXIT = "exit"
"""Kind of a consequence that ends a whole job or step: nothing after it can make it good."""
CLOSING = "closing"
"""Kind of a success that only the end of a log makes one, and only of a program that had caught its exceptions."""

RECOVERY_REACH = 12
"""Lines above a recovery that it may speak of."""
FOLLOWS_WITHIN = 60
"""Lines between a cause and what it brings down with it."""
NEAR_THE_END = 40
"""A failure in the last lines of a log needs no other witness: the log ends because of it."""
WITNESSED = 0.35
"""How much surer a cause is that something follows from."""
ABOUT_AS_SURE = 0.25
"""How much less sure than the surest the earliest may be."""
DETAIL_REACH = 15
"""Lines below a root in which a surer line, or below a heading any line, counts as the same failure, told better."""
DETAIL_IS_SURER = 0.08
"""How much surer that line must be."""
SUSPICION_REACH = 400
"""Lines that a failed fetch may lie above what was missing because of it."""
SURE_IN_SPITE = 0.9
"""How sure a failure must be to count against an exit status of 0."""
IN_SPITE_REACH = 3
"""Lines from the end of a log within which the last word on it must stand."""
CLOSING_REACH = 5
"""Lines from the end of a log within which a closing line counts."""
HINT = 0.4
"""How sure at most a finding is that was settled."""

_SAID_BY_SCRIPTS = re.compile(r"(?i)\W*(?:all )?(?:done|finished|completed?|end)\W*")
"""Last words that a script says whatever became of the program before."""
_SAID_BY_THE_SHELL = re.compile(rb"\s*|(?:real|user|sys)\s+[\dms.]+\s*")
"""Lines between a program's last and a script's next: empty ones, and what `time` says."""

_RUN_TO_BE_BUILT = frozenset({"julia", "lua", "perl", "r", "ruby"})
"""Ecosystems of languages that build a package by running its code."""

_BY_EXIT_STATUS = {
    124: (Category.TIMEOUT, "timed out"),
    127: (Category.DEPENDENCY, "a command was not found"),
    126: (Category.SYSTEM, "a command could not be executed"),
    132: (Category.CRASH, "illegal instruction"),
    134: (Category.CRASH, "aborted"),
    135: (Category.CRASH, "bus error"),
    136: (Category.CRASH, "arithmetic error"),
    137: (Category.OOM, "killed, most often because memory ran out"),
    139: (Category.CRASH, "segmentation fault"),
}


@dataclass
class Event:
    """One line that a rule speaks for."""

    rule: Rule
    number: int
    """1-based line of the log."""
    text: str
    role: Role
    """The rule's, or what the lines around it make of it."""
    category: Category | None
    is_exception: bool = False
    """Whether it ends a traceback: then the program ended there, or caught it and went on."""
    is_warning: bool = False
    """Whether it ends a traceback that a logger wrote below a warning."""
    above: list[bytes] = field(default_factory=list)
    below: list[bytes] = field(default_factory=list)
    announced: Event | None = None
    """The line below that says it, where this one ends with a colon."""

    @property
    def finding(self) -> Finding:
        """The event as it is reported."""
        rule = self.rule
        assert self.category is not None, f"{rule.id} is not reported"  # noqa: S101 - a bug, not bad input
        return Finding(
            rule=rule.id,
            category=self.category,
            line_number=self.number,
            line=self.text,
            explanation=rule.explanation,
            remedy=rule.remedy,
            # What the lines around it made harmless is a hint, however sure its rule is.
            confidence=min(rule.confidence, HINT) if self.role is Role.CONTEXT else rule.confidence,
            ecosystem=rule.ecosystem,
            kind=rule.kind,
            role=self.role,
        )

    @property
    def is_exit(self) -> bool:
        return self.role is Role.CONSEQUENCE and self.rule.kind == EXIT

    @property
    def is_heading(self) -> bool:
        """Whether what failed stands in the lines below."""
        return self.rule.kind == HEADING or (self.rule.kind == UNSPECIFIC and self.text.rstrip().endswith(":"))


@dataclass(frozen=True)
class Judgment:
    """What became of a run."""

    failed: bool
    root: Finding | None
    root_event: Event | None
    standing: tuple[Finding, ...]
    """All that was seen and is not settled, in the order of the log."""


def forgive(events: Sequence[Event], number: int) -> None:
    """Make failures just above a recovery at line `number` into context: it was tried again, or done without."""
    for event in reversed(events):
        if number - event.number > RECOVERY_REACH or event.role is Role.RECOVERY:
            return
        if event.role is Role.CAUSE or (event.role is Role.CONSEQUENCE and not event.is_exit):
            event.role = Role.CONTEXT


def judge(events: Sequence[Event], last: tuple[int, str], exit_status: int | None = None) -> Judgment:
    """Weigh all events of a log, in their order.

    `last` is the number and the text of the last line that is not empty.
    """
    last_line = last[0]
    # A container is forbidden to an agent, but no failure of a build. Layer 1's findings in a trial still hold it.
    events = [event for event in events if event.category is not Category.CONTAINER]
    _settle_warnings(events, last_line, exit_status)
    _settle_caught(events, last_line)
    standing = _unsettled(events)
    failing = [event for event in standing if event.rule.confidence >= FAILING_CONFIDENCE]
    failing = [event for event in failing if event.role in {Role.CAUSE, Role.CONSEQUENCE}]
    failed = bool(failing)
    if exit_status == 0:
        failed = _in_spite(failing, last_line)
    elif exit_status is not None:
        failed = True
    root = _root(events, failing, last_line) if failed else None
    if root and root.role is Role.WORDS:
        root.role = Role.CAUSE
        standing = sorted([*standing, root], key=lambda event: event.number)
    reported = tuple(event.finding for event in standing if event.role in FINDING_ROLES)
    if root:
        return Judgment(True, root.finding, root, reported)
    return Judgment(failed, _unexplained(last, exit_status) if failed and exit_status else None, None, reported)


def _in_spite(failing: Sequence[Event], last_line: int) -> bool:
    """Whether a failure is so plain that even an exit status of 0 does not excuse it: a pipe may have hidden it."""
    if not failing or failing[-1].number <= last_line - IN_SPITE_REACH:
        return False
    return any(e.rule.confidence >= SURE_IN_SPITE and e.number > last_line - NEAR_THE_END for e in failing)


def _unexplained(last: tuple[int, str], exit_status: int) -> Finding:
    """What an exit status says by itself, where the log says nothing."""
    category, meaning = _BY_EXIT_STATUS.get(exit_status, (Category.ARTIFACT, "it failed"))
    return Finding(
        rule="unexplained-exit-status",
        category=category,
        line_number=last[0],
        line=last[1],
        explanation=f"The command ended with exit status {exit_status} ({meaning}), and no line of the log says why.",
        remedy="Run the command again with more output, for example with set -x or --verbose.",
        confidence=FAILING_CONFIDENCE,
        role=Role.CONSEQUENCE,
    )


def _settle_warnings(events: Sequence[Event], last_line: int, exit_status: int | None) -> None:
    """Make the exceptions below a warning into context, but not one that the log of a failed command ends with."""
    for event in events:
        if event.is_warning and (event.number != last_line or exit_status == 0):
            event.role = Role.CONTEXT


def _settle_caught(events: Sequence[Event], last_line: int) -> None:
    """Make the exceptions into context that a program printed and outlived, as its last words tell."""
    closing = [event for event in events if _is_closing(event) and event.number > last_line - CLOSING_REACH]
    if not closing:
        return
    for event in reversed(events):
        if event.role is Role.CONSEQUENCE or (event.role is Role.CAUSE and not event.is_exception):
            return
        if event.is_exception:
            if _ended_at(event, closing[-1]):
                return
            event.role = Role.CONTEXT


def _ended_at(exception: Event, closing: Event) -> bool:
    """Whether the last words are those of a script whose program ended with the exception right above."""
    distance = closing.number - exception.number
    between = exception.below[: distance - 1]
    is_bare = _SAID_BY_SCRIPTS.fullmatch(closing.text) is not None
    return is_bare and distance <= DETAIL_REACH and all(map(_SAID_BY_THE_SHELL.fullmatch, between))


def _is_closing(event: Event) -> bool:
    return event.role is Role.SUCCESS and event.rule.kind == CLOSING


def _settles(event: Event) -> bool:
    return event.role is Role.SUCCESS and event.rule.kind != CLOSING


def _unsettled(events: Sequence[Event]) -> list[Event]:
    """Reported events after the last success, and all if a job broke off."""
    settled_until = 0
    for event in events:
        if _settles(event):
            settled_until = event.number
    reported = [event for event in events if event.role in FINDING_ROLES]
    if any(event.is_exit for event in reported):
        return reported
    unsettled = [event for event in reported if event.number > settled_until]
    if any(event.role is not Role.CONTEXT and event.rule.confidence >= FAILING_CONFIDENCE for event in unsettled):
        # It failed after all. Then an earlier failure may be why, unless it was settled by the same tool.
        return reported
    return unsettled


def _root(events: Sequence[Event], failing: Sequence[Event], last_line: int) -> Event | None:
    causes = [event for event in failing if event.role is Role.CAUSE]
    below = (_told_below(event, events) for event in failing if event.role is Role.CONSEQUENCE)
    told = [event for event in below if event]
    if causes:
        causes = sorted([*causes, *(event for event in told if event.role is Role.WORDS)], key=attrgetter("number"))
    causes = _of_broken_step(events, causes) or causes
    if causes:
        scores = _scores(causes, events, last_line)
        root = next(cause for cause, score in zip(causes, scores, strict=True) if score >= max(scores) - ABOUT_AS_SURE)
        root = _announced(_detail(_told_below(root, events) or root, causes), causes)
        root = _suspect(events, root) or root
        if _stopped_a_build(root, events):
            root.category = Category.BUILD
        return root
    if failing:
        return _suspect(events, failing[0]) or next(iter(told), None) or _weaker(events, failing[0]) or failing[0]
    weak = [event for event in events if event.role in FINDING_ROLES]
    return max(weak, key=lambda event: event.rule.confidence, default=None)


def _of_broken_step(events: Sequence[Event], causes: Sequence[Event]) -> list[Event]:
    """The causes in the step that ended the job."""
    end = next((event for event in events if event.is_exit), None)
    if end is None:
        return []
    begin = max((event.number for event in events if event.role is Role.STEP and event.number < end.number), default=0)
    return [cause for cause in causes if begin <= cause.number <= end.number]


def _scores(causes: Sequence[Event], events: Sequence[Event], last_line: int) -> list[float]:
    """How much each cause weighs as the root."""
    last_success = max((event.number for event in events if _settles(event)), default=0)
    consequences = [event.number for event in events if event.role is Role.CONSEQUENCE]
    scores: list[float] = []
    witness = last_line + NEAR_THE_END - FOLLOWS_WITHIN  # a line that a cause not far above brought down
    for cause in reversed(causes):
        near = (number for number in consequences if number > cause.number)
        follows = min((*near, witness if witness > cause.number else last_line + FOLLOWS_WITHIN + 1)) - cause.number
        witnessed = follows <= FOLLOWS_WITHIN or cause.number > last_line - NEAR_THE_END
        if witnessed:
            witness = cause.number
        settled = cause.number < last_success and not witnessed
        scores.insert(0, cause.rule.confidence + WITNESSED * witnessed - WITNESSED * settled)
    return scores


def _told_below(heading: Event, events: Sequence[Event]) -> Event | None:
    """What failed, by the lines below a heading: the first that a tool's own rule knows, or else in general words.

    What a service of a machine could have lived with it did not live with, if the heading says that it failed.
    """
    if not heading.is_heading:
        return None
    near = [event for event in events if 0 < event.number - heading.number <= DETAIL_REACH and not event.is_heading]
    causes = [event for event in near if event.role is Role.CAUSE and event.rule.confidence >= FAILING_CONFIDENCE]
    known = (event for event in causes if event.rule.kind != UNSPECIFIC)
    words = (event for event in near if event.role is Role.WORDS or event in causes)
    excused = (event for event in near if event.role is Role.CONTEXT and event.rule.role is Role.CAUSE)
    return next(known, None) or next(excused, None) or next(words, None) or heading.announced


def _detail(root: Event, causes: Sequence[Event]) -> Event:
    """The line that says best what the root's line only announces: `Traceback`, `CMake Error at`, `throw err;`."""
    for cause in causes:
        near = 0 < cause.number - root.number <= DETAIL_REACH
        if near and cause.rule.confidence > root.rule.confidence + DETAIL_IS_SURER:
            root = cause
    return root


def _announced(root: Event, causes: Sequence[Event]) -> Event:
    """The line that a root's line announces, as the rule sees it that knows it."""
    while line := root.announced:
        root = next((cause for cause in causes if cause.number == line.number), line)
    return root


def _stopped_a_build(root: Event, events: Sequence[Event]) -> bool:
    """Whether a program's error is that of a package being built."""
    if root.category is not Category.ARTIFACT or root.rule.ecosystem not in _RUN_TO_BE_BUILT:
        return False
    followers = (e for e in events if 0 < e.number - root.number <= FOLLOWS_WITHIN and e.role is Role.CONSEQUENCE)
    first = next(followers, None)
    return first is not None and first.category is Category.BUILD and first.rule.ecosystem == root.rule.ecosystem


def _suspect(events: Sequence[Event], root: Event) -> Event | None:
    """A fetch that was given up just before something was found missing: that is why it is missing."""
    if root.category not in {Category.DEPENDENCY, Category.NETWORK, Category.BUILD}:
        return None
    for event in events:
        near = 0 < root.number - event.number <= SUSPICION_REACH
        if near and event.role is Role.RECOVERY and event.category is Category.NETWORK:
            settled = any(_settles(e) and event.number < e.number < root.number for e in events)
            if not settled and event.rule.ecosystem == root.rule.ecosystem:
                return next((e for e in events if _is_forgiven_by(event, e)), event)
    return None


def _is_forgiven_by(recovery: Event, event: Event) -> bool:
    """Whether a recovery from a failure of the network speaks of this one."""
    near = 0 < recovery.number - event.number <= RECOVERY_REACH
    return near and event.role is Role.CONTEXT and event.category is recovery.category


def _weaker(events: Sequence[Event], consequence: Event) -> Event | None:
    """The surest hint above a consequence that nothing else explains; what was forgiven is one too."""
    hints = [
        event
        for event in events
        if event.role in {Role.CAUSE, Role.CONTEXT, Role.WORDS}
        and event.finding.confidence < FAILING_CONFIDENCE
        and 0 < consequence.number - event.number <= FOLLOWS_WITHIN
    ]
    return max(hints, key=lambda hint: (hint.rule.confidence, hint.number), default=None)
