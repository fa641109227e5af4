"""Reads a log as a stream of bytes and reports what failed in it.

    reader = Reader()
    for chunk in chunks:
        reader.feed(chunk)
    report = reader.close(exit_status=2)

Promises a reviewer can check: no I/O; memory is bounded whatever the log holds (a line without end is cut, repetitions
of a rule are only counted); how a log is cut into chunks changes nothing; a line gives at most one event, that of its
surest rule; a line feed and nothing else ends a line, so line numbers are those of a text editor.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pytest_deploybench.layer1 import tracebacks
from pytest_deploybench.layer1.cleaning import (
    LINE_LIMIT,
    inner_words,
    is_of_a_system,
    own_words,
    shown,
    visible,
    without_escapes,
    without_prefix,
)
from pytest_deploybench.layer1.index import index_of
from pytest_deploybench.layer1.judgment import DETAIL_REACH, Event, forgive, judge
from pytest_deploybench.layer1.report import Report
from pytest_deploybench.layer1.rules import (
    FAILING_CONFIDENCE,
    FINDING_ROLES,
    HEADING,
    UNSPECIFIC,
    Catalogue,
    Rule,
    load_catalogue,
)
from pytest_deploybench.layer1.sieve import Sieve
from pytest_deploybench.model import Finding, Role

EVENTS_PER_RULE = 10
"""The first cause matters; the ten-thousandth repetition of it does not, and must not crowd out another rule."""

CONTEXT_LINES = 3
"""Lines above and below the root that a report shows."""

TAIL_LIMIT = 1 << 16
"""Bytes of a line without an end, or of a traceback without one, that wait for more."""

SMALL = 1 << 18
"""Bytes up to which building the quick sieve costs more than it saves."""

LAST_LINES = 2
"""Lines at the end of a log in which a complaint in general words counts, if nothing else failed."""

_LAST_COMPLAINT = re.compile(
    r"^(?:[\w'`\".:/-]{1,40} ){0,8}(?:cannot|can't|could ?n.t|could not|unable|failed|refused|denied|mismatched"
    r"|unsupported|not (?:found|supported|available|allowed|permitted)|missing|[Tt]imed out|No usable|no such)\b"
)
"""What a program says last when it stops for that reason."""

_COMPLAINT = re.compile(
    r"(?i)\b(?:errors?|fail\w{0,6}|fatal|no|not|cannot|can't|could ?n.t|unable|missing|refus\w{2,3}|denied|invalid"
    r"|un(?:known|met|supported)|wrong|bad|must|needs?|needed|requires?|required|incompatible|conflict\w{0,3}|mismatch"
    r"|corrupt\w{0,3}|abort\w{0,3})\b"
)
"""What a line says that may be why a later one failed."""

_ANNOUNCEMENT = re.compile(r"[^'\"`\u2018\d/\[({]{1,200}:\s*")
"""A line that names nothing and leaves that to the next."""

_CAUSED_BY = re.compile(r"\s*Caused by:(?! [a-z]\w*\.)\s*")
"""What stands above, or in front of, why the line before came about."""

_SAYS_SOMETHING = re.compile(r"\b[^\W\d_]{2,}\w*\b(?!\])")
"""A line with a word other than the `INFO` in front of a row of dashes."""

_GENERIC = "generic"
"""The ecosystem of the rules for tools that no other file knows."""

_OF_MANY = frozenset({_GENERIC, "permission", "file"})
"""Ecosystems of what any service of a machine complains of in its journal, and lives with."""

_UNKNOWN_EXCEPTION = "unhandled-python-exception"
"""The rule that speaks for the end of a traceback when no other does."""


class Reader:
    """One log; not to be used again after `close`."""

    def __init__(self, catalogue: Catalogue | None = None, sieve: Sieve | None = None) -> None:
        """Without a sieve, the plain one reads small logs and the quickest all others.

        Raises:
            CatalogueError: no catalogue was given and the one that comes with the package is damaged.
        """
        self._catalogue = load_catalogue() if catalogue is None else catalogue
        self._index = index_of(self._catalogue)
        self._sieve, self._sieve_is_ours = sieve or self._index.plain_sieve, sieve is None
        self._bytes = 0
        self._held = b""  # whole lines from the beginning of a traceback that has not ended
        self._tail = b""  # a line that has not ended
        self._lines = 0
        """Lines that were read: all before `_held`."""
        self._above: deque[bytes] = deque(maxlen=DETAIL_REACH)
        self._last = (0, b"")  # number and text of the last line that is not empty
        self._events: list[Event] = []
        self._latest: dict[str, Event] = {}  # of the rules whose last word counts
        self._broken_off = False
        self._forgiven_until = 0
        """Line that a recovery ended by a colon speaks of: `Download failed, trying the next mirror:`."""
        self._count: Counter[str] = Counter()
        self._unframed: list[tuple[Event, int]] = []  # events that want more lines below, and where these begin
        self._traceback: Event | None = None  # the last one
        self._chained = False  # whether the next traceback belongs to the last one

    def feed(self, chunk: bytes) -> list[Finding]:
        """Read on and tell what the lines that ended hold; the judgment on it comes with `close`."""
        self._bytes += len(chunk)
        if self._sieve_is_ours and self._bytes > SMALL:
            self._sieve = self._index.best_sieve
        whole, feed, rest = chunk.rpartition(b"\n")
        if not feed:
            self._tail = _cut(self._tail + rest)
            return []
        block, self._tail, self._held = self._held + self._tail + whole + feed, _cut(rest), b""
        return self._read(block, is_last=False)

    def findings(self) -> list[Finding]:
        """All that was found so far and is reported, in the order of the log, before any judgment."""
        return [event.finding for event in self._events if event.role in FINDING_ROLES]

    def close(self, exit_status: int | None = None) -> Report:
        """The judgment on the whole log; `exit_status` is that of the command that wrote it, where it is known."""
        rest, self._held = self._held + self._tail, b""
        self._read(rest, is_last=True)
        for event in self._events:
            event.announced = _announced_by(event)
        events = [*self._events, *self._latest.values(), *self._told_around()]
        events.sort(key=lambda event: event.number)
        number, text = self._last
        last = (number, shown(visible(text)))
        judgment = judge(events, last, exit_status)
        if not judgment.failed and exit_status is None:
            judgment = judge([*events, *self._last_complaint()], last)
        return Report(
            failed=judgment.failed,
            root=judgment.root,
            findings=judgment.standing,
            counts={finding.rule: self._count[finding.rule] for finding in judgment.standing},
            lines=self._lines + bool(self._tail),
            context=_context(judgment.root_event),
        )

    def _read(self, block: bytes, *, is_last: bool) -> list[Finding]:
        block = without_escapes(block)
        known, position, lines = len(self._events), 0, self._lines
        for start, end, needles in self._sieve.candidates(block):
            if start < position:  # within a traceback that was read as a whole
                continue
            lines += block.count(b"\n", position, start)
            position, text = start, visible(block[start:end])
            if self._index.is_mark(needles) and tracebacks.HEADER in text:
                spans = list(islice(_spans(block, end + 1), tracebacks.LINES_AT_MOST))
                line = _Line(block, start, end, lines + 1)
                following = (without_prefix(visible(block[first:last])) for first, last in spans)
                distance = tracebacks.last_line(without_prefix(text), following)
                if distance is None and not is_last and len(block) - start <= TAIL_LIMIT:
                    block, self._held = block[:start], block[start:]
                    break
                if distance:
                    ending = _Line(block, *spans[distance - 1], line.number + distance)
                    self._note_exception(ending, line)
                    position, lines = ending.end, lines + distance
                    continue
            if self._index.is_mark(needles):
                self._chained = self._chained or any(mark in text for mark in tracebacks.CHAINED)
            if rule := self._speaker(text, needles):
                self._note(rule, _Line(block, start, end, lines + 1))
        self._move_on(block, lines + block.count(b"\n", position))
        return [event.finding for event in self._events[known:] if event.role in FINDING_ROLES]

    def _speaker(self, text: str, needles: Sequence[int]) -> Rule | None:
        """The rule for a line, or for what it passes on of another tool, whichever is surer."""
        words = own_words(text)
        rule, inner = self._index.speaker(words, needles), inner_words(words)
        passed_on = self._index.speaker(inner, needles) if inner else None
        if passed_on and (rule is None or passed_on.confidence > rule.confidence):
            return passed_on
        return rule

    def _note_exception(self, line: _Line, header: _Line) -> None:
        """What a traceback ends with, which must not be known by name to count."""
        rule, unknown = self._index.speaker(own_words(line.text)), self._index.by_id(_UNKNOWN_EXCEPTION)
        if rule is None or (unknown and rule.role in FINDING_ROLES and rule.confidence < unknown.confidence):
            rule = unknown
        event = self._note(rule, line, ends_program=True) if rule else None
        chained, self._chained, earlier = self._chained, False, self._traceback
        if not event or event.role is not Role.CAUSE:
            return
        self._traceback, event.is_exception = event, True
        line_before = without_prefix(visible(b"".join(header.above(1))))
        event.is_warning = tracebacks.is_warning(line_before)
        if tracebacks.is_harmless(line_before):
            event.role = Role.CONTEXT
        elif chained and earlier:
            # Of one failure the exception that says most is the cause, of equals the first.
            less = earlier if event.rule.confidence > earlier.rule.confidence else event
            less.role = Role.CONSEQUENCE
            self._traceback = event if less is earlier else earlier

    def _note(self, rule: Rule, line: _Line, *, ends_program: bool = False) -> Event | None:
        """The event, where it is kept; what ended a program was not lived with."""
        self._count[rule.id] += 1
        latest_counts = rule.role in {Role.SUCCESS, Role.STEP}
        if not latest_counts and self._count[rule.id] > EVENTS_PER_RULE:
            return None
        text = line.text
        if rule.kind == UNSPECIFIC and (words := self._index.words(own_words(text))):
            rule = replace(rule, category=words.category, explanation=words.explanation, remedy=words.remedy)
        event = Event(rule, line.number, shown(text), rule.role, rule.category)
        is_lived_with = not ends_program and rule.ecosystem in _OF_MANY and is_of_a_system(text)
        if rule.role in FINDING_ROLES and (is_lived_with or line.number <= self._forgiven_until):
            event.role = Role.CONTEXT
        if latest_counts:
            if rule.role is Role.SUCCESS or not self._broken_off:
                self._latest[rule.id] = event
            return event
        if rule.role is Role.RECOVERY:
            forgive(self._events, line.number)
            self._forgiven_until = line.number + text.rstrip().endswith(":")
        self._broken_off = self._broken_off or event.is_exit
        self._events.append(event)
        if rule.role in FINDING_ROLES:
            above = line.above(DETAIL_REACH)
            earlier = list(self._above)[max(0, len(self._above) + len(above) - DETAIL_REACH) :]
            event.above = [*earlier, *above] if len(above) < DETAIL_REACH else above
            self._unframed.append((event, line.end + 1))
        return event

    def _told_around(self) -> Iterator[Event]:
        """What lines mean that no rule knows: the first below a heading, the last above a consequence."""
        for event in self._events:
            lines, place = [*event.above, event.text.encode(), *event.below], len(event.above)
            first = event.number - place
            if event.is_heading:
                yield from self._told(lines, range(place + 1, len(lines)), first)
            elif event.role is Role.CONSEQUENCE:
                yield from self._told(lines, range(place - 1, -1, -1), first, _COMPLAINT)

    def _last_complaint(self) -> Iterator[Event]:
        """The first of the last lines that complains in general words, of a log in which nothing else failed."""
        lines = list(self._above)
        first = self._lines + bool(self._tail) - len(lines) + 1
        for event in self._told(lines, range(max(0, len(lines) - LAST_LINES), len(lines)), first, _LAST_COMPLAINT):
            event.rule, event.role = replace(event.rule, confidence=FAILING_CONFIDENCE), Role.CAUSE
            yield event

    def _told(
        self, lines: list[bytes], places: Iterable[int], first: int, wanted: re.Pattern[str] | None = None
    ) -> Iterator[Event]:
        """The first of some lines that means something in general words, none or one, in the order of `places`.

        `first` is the number of the first of the lines; only a line counts that has what is `wanted`.
        """
        for place in places:
            text = visible(lines[place])
            words = own_words(text)
            if (wanted and not wanted.search(words)) or self._index.speaker(words):
                continue
            if rule := self._index.words(words):
                self._count[rule.id] += 1
                event = Event(rule, first + place, shown(text), rule.role, rule.category)
                event.above, event.below = lines[:place], lines[place + 1 :]
                yield event
                return

    def _move_on(self, block: bytes, lines: int) -> None:
        """Keep of a block that was read what the next one needs."""
        for event, offset in self._unframed:
            wanted = DETAIL_REACH - len(event.below)
            event.below += [_cut(block[start:end]) for start, end in islice(_spans(block, offset), wanted)]
        self._unframed = [(event, 0) for event, _ in self._unframed if len(event.below) < DETAIL_REACH]
        self._above.extend(_Line(block, len(block), len(block), 0).above(DETAIL_REACH))
        full = block.rstrip()
        if full:
            self._last = lines - block.count(b"\n", len(full)) + 1, full[full.rfind(b"\n") + 1 :]
        self._lines = lines


@dataclass(frozen=True)
class _Line:
    """Where a line stands in its block, and in the log."""

    block: bytes
    start: int
    end: int
    number: int

    @property
    def text(self) -> str:
        return visible(self.block[self.start : self.end])

    def above(self, count: int) -> list[bytes]:
        """Up to so many lines before this one, as far as its block has them."""
        found: list[bytes] = []
        position = self.start
        while position > 0 and len(found) < count:
            start = self.block.rfind(b"\n", 0, position - 1) + 1
            found.insert(0, _cut(self.block[start : position - 1]))
            position = start
        return found


def _cut(line: bytes) -> bytes:
    """A line without end, short enough to wait for the rest of it; both its ends and its last state stay."""
    if len(line) <= TAIL_LIMIT:
        return line
    line = line[line.rstrip(b"\r").rfind(b"\r") + 1 :]
    return line if len(line) <= TAIL_LIMIT else line[: LINE_LIMIT * 2] + line[-LINE_LIMIT * 2 :]


def _spans(block: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Where the lines from a position on begin and end."""
    while position < len(block):
        end = block.find(b"\n", position)
        end = len(block) if end < 0 else end
        yield position, end
        position = end + 1


def _announced_by(event: Event) -> Event | None:
    """The first line with words below a colon, if the line that ends with it is a heading or names nothing itself."""
    words = own_words(event.text)
    is_bare = event.role is Role.CAUSE and _ANNOUNCEMENT.fullmatch(inner_words(words) or words)
    is_heading = event.rule.kind == HEADING and words.rstrip().endswith(":")
    is_explained = event.role is Role.CAUSE and _is_cause_named_below(event)
    if not is_bare and not is_heading and not is_explained:
        return None
    for place, line in enumerate(event.below):
        text = visible(line)
        if _SAYS_SOMETHING.search(own_words(text)) and not _CAUSED_BY.fullmatch(text):
            below = Event(event.rule, event.number + place + 1, shown(text), Role.WORDS, event.category)
            below.above, below.below = (
                [*event.above, event.text.encode(), *event.below[:place]],
                event.below[place + 1 :],
            )
            return below
    return None


def _is_cause_named_below(event: Event) -> bool:
    """Whether the next line that is not empty begins the chain of causes that programs in Rust print."""
    following = next((text for line in event.below if (text := visible(line)).strip()), "")
    return _CAUSED_BY.match(following) is not None


def _context(event: Event | None) -> tuple[tuple[int, str], ...]:
    if event is None:
        return ()
    above, below = event.above[-CONTEXT_LINES:], event.below[:CONTEXT_LINES]
    around = [*map(_readable, above), event.text, *map(_readable, below)]
    return tuple(enumerate(around, start=event.number - len(above)))


def _readable(raw: bytes) -> str:
    return shown(visible(raw))
