"""Draws terms of commutative rings, rewrites them, and checks proofs step by step. No I/O but for `program`.

Nothing here searches: that two terms are equal is known because one was rewritten into the other, that two are unequal
because some numbers tell them apart, and a proof is judged by applying the rule that each of its steps names.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Term = str | tuple["Term", ...]
"""A number or a variable by its text, or operator and operands."""
Place = tuple[int, ...]
"""Which operand to go into, from the whole term on."""

RULES: dict[str, tuple[str, str]] = {
    "comm-add": ("(+ ?a ?b)", "(+ ?b ?a)"),
    "comm-mul": ("(* ?a ?b)", "(* ?b ?a)"),
    "assoc-add": ("(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"),
    "assoc-mul": ("(* ?a (* ?b ?c))", "(* (* ?a ?b) ?c)"),
    "distribute": ("(* ?a (+ ?b ?c))", "(+ (* ?a ?b) (* ?a ?c))"),
    "factor": ("(+ (* ?a ?b) (* ?a ?c))", "(* ?a (+ ?b ?c))"),
    "add-zero": ("(+ ?a 0)", "?a"),
    "mul-one": ("(* ?a 1)", "?a"),
    "mul-zero": ("(* ?a 0)", "0"),
    "cancel": ("(- ?a ?a)", "0"),
}
"""The rules of the experimenter's program; in each, the right side has no variable that the left side lacks."""
ARROWS = ("Rewrite=>", "Rewrite<=")
LONGEST, DEEPEST = 100_000, 200
"""Characters and levels of a term that is read at all."""


@dataclass(frozen=True)
class Terms:
    """One drawn challenge with its truth."""

    equal: list[tuple[Term, Term]]
    unequal: list[tuple[Term, Term]]
    bloated: list[tuple[Term, int]]
    """Terms, each with the size of a smaller equal one."""

    @property
    def pairs(self) -> list[tuple[Term, Term]]:
        """All pairs in the order in which they are asked for: the unequal ones stand among the equal."""
        return [pair for both in zip(self.equal, self.unequal, strict=True) for pair in both]

    def as_input(self) -> bytes:
        """One line for each question."""
        lines = [f"prove\t{text(left)}\t{text(right)}" for left, right in self.pairs]
        lines += [f"simplify\t{text(term)}" for term, _ in self.bloated]
        return ("\n".join(lines) + "\n").encode()


def draw_terms(seed: int) -> Terms:
    """Equal pairs, some rewriting apart; the same with one number changed; and terms blown up by what cancels out."""
    rng = random.Random(seed)
    equal: list[tuple[Term, Term]] = []
    unequal: list[tuple[Term, Term]] = []
    while len(equal) < 6:
        left = _random_term(rng, 5)
        right = _rewritten(rng, left, 4)
        if left != right:
            equal.append((left, right))
            unequal.append((left, _changed(rng, left, right)))
    small = [_random_term(rng, 3) for _ in range(4)]
    return Terms(equal, unequal, [(_bloated(rng, term), size(term)) for term in small])


def program() -> dict[str, bytes]:
    """The experimenter's own program and its manifest."""
    folder = Path(__file__).parent
    return {
        "Cargo.toml": (folder / "egg_experiment.toml").read_bytes(),
        "egg_experiment.rs": (folder / "egg_experiment.rs").read_bytes(),
    }


def parse(line: str) -> Term:
    """The term that a text writes.

    Raises:
        AssertionError: it writes none.
    """
    stack: list[list[Term]] = [[]]
    assert len(line) <= LONGEST, f"a term of {len(line)} characters"
    for word in re.findall(r"[()]|[^\s()]+", line):
        if word == "(":
            stack.append([])
        elif word != ")":
            stack[-1].append(word)
        else:
            done = tuple(stack.pop())
            assert stack, f"expected one term, got {line[:80]!r}"
            stack[-1].append(done)
        assert len(stack) <= DEEPEST, f"a term nested deeper than {DEEPEST}: {line[:80]}"
    assert [len(parts) for parts in stack] == [1], f"expected one term, got {line[:80]!r}"
    return stack[0][0]


def text(term: Term) -> str:
    """As the program reads and writes it."""
    return term if isinstance(term, str) else f"({' '.join(map(text, term))})"


def size(term: Term) -> int:
    """Number of its operators, numbers and variables."""
    return 1 if isinstance(term, str) else 1 + sum(map(size, term[1:]))


def value(term: Term, variables: dict[str, int]) -> int:
    """The integer that it stands for.

    Raises:
        AssertionError: it has an operator or a variable of its own.
    """
    if isinstance(term, str):
        if re.fullmatch(r"-?\d+", term):
            return int(term)
        assert term in variables, f"expected a number or one of {sorted(variables)}, got {term[:80]!r}"
        return variables[term]
    operator, left, right = term if len(term) == 3 else ("", "0", "0")
    assert operator in ("+", "*", "-"), f"expected (+ a b), (* a b) or (- a b), got {text(term)[:80]}"
    one, other = value(left, variables), value(right, variables)
    return {"+": one + other, "*": one * other, "-": one - other}[operator]


def same(one: Term, other: Term, rng: random.Random) -> bool:
    """Whether two terms agree at random numbers: polynomials of so low a degree that differ do so almost everywhere."""
    points = [{name: rng.randrange(-(10**6), 10**6) for name in "xyz"} for _ in range(3)]
    return all(value(one, point) == value(other, point) for point in points)


def proof_error(left: Term, right: Term, proof: list[Any]) -> str | None:
    """What is wrong with a proof that two terms are equal, None where each step follows from the one before."""
    if not proof:
        return "it was not proved"
    if not all(isinstance(step, str) for step in proof):
        return f"its steps are no texts: {proof[0]!r}"
    here, *steps = map(parse, proof)
    if here != left:
        return f"it begins with {text(here)[:200]}"
    for number, step in enumerate(steps, start=1):
        there, marks = _unmarked(step)
        if len(marks) != 1 or not _follows(here, there, *marks[0]):
            return f"step {number}, {text(step)[:200]}, does not follow from {text(here)[:200]}"
        here = there
    return None if here == right else f"it ends with {text(here)[:200]}"


def _unmarked(step: Term) -> tuple[Term, list[tuple[Place, str, str]]]:
    """A step's term, and each mark on it: place, arrow and name of the rule."""
    if isinstance(step, str):
        return step, []
    if len(step) == 3 and step[0] in ARROWS:
        inner, marks = _unmarked(step[2])
        return inner, [((), str(step[0]), str(step[1])), *marks]
    parts, found = [], []
    for index, operand in enumerate(step):
        part, marks = _unmarked(operand)
        parts.append(part)
        found += [((index, *place), arrow, rule) for place, arrow, rule in marks]
    return tuple(parts), found


def _follows(before: Term, after: Term, place: Place, arrow: str, rule: str) -> bool:
    """Whether the terms differ by this rule at this place, from left to right or, `<=`, from right to left."""
    if rule not in RULES:
        return False
    for index in place:
        if isinstance(before, str) or isinstance(after, str) or len(before) != len(after):
            return False
        rest = [*before[:index], *before[index + 1 :]] == [*after[:index], *after[index + 1 :]]
        if not rest:
            return False
        before, after = before[index], after[index]
    source, target = (before, after) if arrow == "Rewrite=>" else (after, before)
    left, right = map(parse, RULES[rule])
    binding = _match(left, source, {})
    return binding is not None and _filled(right, binding) == target


def _match(pattern: Term, term: Term, binding: dict[str, Term]) -> dict[str, Term] | None:
    """What the pattern's variables must stand for so that it is the term."""
    if isinstance(pattern, str):
        if not pattern.startswith("?"):
            return binding if pattern == term else None
        return binding | {pattern: term} if binding.get(pattern, term) == term else None
    if isinstance(term, str) or len(term) != len(pattern):
        return None
    found: dict[str, Term] | None = binding
    for inner, operand in zip(pattern, term, strict=True):
        found = None if found is None else _match(inner, operand, found)
    return found


def _filled(pattern: Term, binding: dict[str, Term]) -> Term:
    if isinstance(pattern, str):
        return binding.get(pattern, pattern)
    return tuple(_filled(inner, binding) for inner in pattern)


def _random_term(rng: random.Random, leaves: int) -> Term:
    if leaves == 1:
        return rng.choice(["x", "y", "z", str(rng.randint(2, 9))])
    first = rng.randint(1, leaves - 1)
    return (rng.choice("+*"), _random_term(rng, first), _random_term(rng, leaves - first))


def _places(term: Term, here: Place = ()) -> Iterator[tuple[Place, Term]]:
    yield here, term
    if not isinstance(term, str):
        for index in (1, 2):
            yield from _places(term[index], (*here, index))


def _put(term: Term, place: Place, new: Term) -> Term:
    if not place:
        return new
    assert not isinstance(term, str)
    index, *rest = place
    return (*term[:index], _put(term[index], tuple(rest), new), *term[index + 1 :])


def _rewritten(rng: random.Random, term: Term, times: int) -> Term:
    """The term after so many rules at random places; none takes it back to where it was."""
    rules = [("comm-add", 0), ("comm-mul", 0), ("assoc-add", 0), ("assoc-add", 1), ("assoc-mul", 0), ("assoc-mul", 1)]
    rules += [("distribute", 0), ("factor", 0), ("add-zero", 1), ("mul-one", 1)]
    seen = [term]
    while len(seen) <= times:
        name, side = rng.choice(rules)
        pattern, other = (parse(RULES[name][each]) for each in (side, 1 - side))
        place, found = rng.choice(list(_places(seen[-1])))
        binding = _match(pattern, found, {})
        if binding is not None and (new := _put(seen[-1], place, _filled(other, binding))) not in seen:
            seen.append(new)
    return seen[-1]


def _changed(rng: random.Random, left: Term, right: Term) -> Term:
    """The right term with one leaf changed so that it is no longer equal to the left."""
    while True:
        place, _ = rng.choice([(place, leaf) for place, leaf in _places(right) if isinstance(leaf, str)])
        other = _put(right, place, rng.choice(["x", "y", "z", str(rng.randint(2, 9))]))
        if not same(left, other, rng):
            return other


def _bloated(rng: random.Random, term: Term) -> Term:
    """The term with three things around it or in it that come to nothing."""
    for _ in range(3):
        place, inner = rng.choice(list(_places(term)))
        extra = _random_term(rng, 2)
        bloat: list[Term] = [
            ("+", inner, ("-", extra, extra)),
            ("*", "1", inner),
            ("+", ("*", extra, "0"), inner),
            ("*", inner, ("+", "1", ("-", extra, extra))),
        ]
        term = _put(term, place, rng.choice(bloat))
    return term
