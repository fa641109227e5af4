"""Draws the D3 challenge and says what a right document and right layouts are. No I/O but for `program`.

Nothing here knows how D3 computes: bars follow from a proportion, a treemap is right if it tiles, a Voronoi diagram if
every point lies in the cell of its nearest site. The languages are those of the C library, which D3's own build asks.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from dataclasses import dataclass
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

Point = tuple[float, float]
Places = dict[str, tuple[float, ...]]
"""Edges left, top, right and bottom by name."""

SLACK = 1e-6
"""In units of a drawing some hundreds wide: over 60 draws D3 never erred by as much; a wrong layout errs by units."""
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_OWN_NAME = re.compile(r"\bd3_\w+", re.ASCII)


@dataclass(frozen=True)
class Language:
    """What the C library says of a locale."""

    days: str
    """Names, parted by spaces, from Sunday on."""
    short_days: str
    months: str
    short_months: str
    usual: str
    """How a date is usually written, for strftime."""
    thousands: str

    def written(self, day: date) -> str:
        """A date by the program's format `%A %e %B %Y, %a, %b, %x`."""
        long_day, short_day = (names.split()[day.isoweekday() % 7] for names in (self.days, self.short_days))
        long_month, short_month = (names.split()[day.month - 1] for names in (self.months, self.short_months))
        usual = day.strftime(self.usual)
        return f"{long_day} {day.day:2} {long_month} {day.year}, {short_day}, {short_month}, {usual}"

    def grouped(self, number: int) -> str:
        """A number by the program's format `,d`."""
        return f"{number:,}".replace(",", self.thousands)


LANGUAGES = {
    "de_DE.UTF-8": Language(
        "Sonntag Montag Dienstag Mittwoch Donnerstag Freitag Samstag",
        "So Mo Di Mi Do Fr Sa",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
        *("%d.%m.%Y", "."),
    ),
    "es_ES.UTF-8": Language(
        "domingo lunes martes miércoles jueves viernes sábado",
        "dom lun mar mié jue vie sáb",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sep oct nov dic",
        *("%d/%m/%y", "."),
    ),
    "fr_FR.UTF-8": Language(
        "dimanche lundi mardi mercredi jeudi vendredi samedi",
        "dim. lun. mar. mer. jeu. ven. sam.",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "janv. févr. mars avril mai juin juil. août sept. oct. nov. déc.",
        *("%d/%m/%Y", "\N{NARROW NO-BREAK SPACE}"),
    ),
    "hu_HU.UTF-8": Language(
        "vasárnap hétfő kedd szerda csütörtök péntek szombat",
        "v h k sze cs p szo",
        "január február március április május június július augusztus szeptember október november december",
        "jan febr márc ápr máj jún júl aug szept okt nov dec",
        *("%Y-%m-%d", "."),
    ),
    "it_IT.UTF-8": Language(
        "domenica lunedì martedì mercoledì giovedì venerdì sabato",
        "dom lun mar mer gio ven sab",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "gen feb mar apr mag giu lug ago set ott nov dic",
        *("%d/%m/%Y", "."),
    ),
}
"""As glibc 2.36 has them."""


@dataclass(frozen=True)
class Drawing:
    """One drawn challenge."""

    locale: str
    size: tuple[int, int]
    before: dict[str, int]
    after: dict[str, int]
    groups: dict[str, dict[str, int]]
    """Values of a treemap's leaves, by group and name."""
    sites: list[Point]
    probes: list[Point]
    """Points that stay on the host, to ask in which cell they lie."""
    dates: list[date]
    numbers: list[int]

    def inputs(self) -> dict[str, bytes]:
        """What the machine is given."""
        groups = [
            {"name": group, "children": [{"name": name, "value": value} for name, value in leaves.items()]}
            for group, leaves in self.groups.items()
        ]
        settings = {
            "size": self.size,
            "tree": {"name": "all", "children": groups},
            "sites": self.sites,
            "dates": [[day.year, day.month, day.day] for day in self.dates],
            "numbers": self.numbers,
        }
        tables = {"before.csv": self.before, "after.csv": self.after}
        return {
            "settings.json": json.dumps(settings).encode(),
            **{name: _csv(table) for name, table in tables.items()},
        }

    def joins(self) -> dict[str, list[str]]:
        """Names that the second join must find in each of its three parts, sorted."""
        old, new = set(self.before), set(self.after)
        return {"enter": sorted(new - old), "update": sorted(new & old), "exit": sorted(old - new)}

    def bars(self) -> dict[str, tuple[float, float, float]]:
        """Place, width and height of each bar in the end, by name."""
        step, highest = self.size[0] / len(self.after), max(self.after.values())
        return {
            name: (index * step, step, self.size[1] * value / highest)
            for index, (name, value) in enumerate(self.after.items())
        }

    def written(self) -> dict[str, list[str]]:
        """The dates and numbers as the locale writes them."""
        language = LANGUAGES[self.locale]
        return {
            "dates": [language.written(day) for day in self.dates],
            "numbers": [language.grouped(number) for number in self.numbers],
        }


def program() -> bytes:
    """The experimenter's own program."""
    return Path(__file__).with_name("d3_experiment.js").read_bytes()


def draw_drawing(seed: int) -> Drawing:
    """Data, geometry and dates; every name of a weekday and of a month is written once at least."""
    rng = random.Random(seed)
    size = (rng.randint(300, 600), rng.randint(200, 400))
    names = _names(rng, 40)
    before, stay, come = names[:10], rng.sample(names[:10], rng.randint(4, 7)), names[10 : 10 + rng.randint(3, 6)]
    after = rng.sample([*stay, *come], len(stay) + len(come))
    leaves = iter(names[20:])
    groups = {
        f"group {number}": {next(leaves): rng.randint(1, 99) for _ in range(rng.randint(2, 5))} for number in range(4)
    }
    start = date(rng.randint(1990, 2030), 1, rng.randint(1, 10))

    def points(count: int) -> list[Point]:
        return [(rng.uniform(0, size[0]), rng.uniform(0, size[1])) for _ in range(count)]

    return Drawing(
        locale=rng.choice(sorted(LANGUAGES)),
        size=size,
        before={name: rng.randint(1, 900) for name in before},
        after={name: rng.randint(1, 900) for name in after},
        groups=groups,
        sites=points(rng.randint(15, 25)),
        probes=points(300),
        dates=[start + timedelta(days=31 * number) for number in range(12)],
        numbers=[rng.randrange(10**digits, 10 ** (digits + 1)) for digits in (0, 2, 3, 4, 6, 9)],
    )


def own_names(library: str) -> set[str]:
    """D3's own names in a build: the same in every locale, whether it was indented anew or not."""
    return set(_OWN_NAME.findall(_COMMENT.sub("", library)))


def digest(names: set[str]) -> str:
    """SHA-256 over names."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


class Chart(HTMLParser):
    """The bars and the axis of a document."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.bars: list[dict[str, str]] = []
        self.ticks: list[tuple[str, str]] = []
        """Text and `transform` of each tick."""
        self._groups: list[str] = []
        self._text: list[str] | None = None
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "rect" and attributes.get("class") == "bar":
            self.bars.append(attributes)
        elif tag == "g":
            self._groups.append(attributes.get("transform", ""))
        elif tag == "text":
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "g" and self._groups:
            self._groups.pop()
        elif tag == "text" and self._text is not None:
            self.ticks.append(("".join(self._text), self._groups[-1] if self._groups else ""))
            self._text = None


def tick_errors(ticks: list[tuple[str, str]], highest: float, length: float) -> list[str]:
    """Ticks of an axis from 0 to `highest` that do not stand where their own text says."""
    wrong = []
    for text, transform in ticks:
        place = re.fullmatch(r"translate\(([-+.\de]+)[ ,]+[-+.\de]+\)", transform)
        value = re.fullmatch(r"\d+(\.\d+)?", text)
        if not (place and value and abs(float(place[1]) - float(text) * length / highest) < SLACK):
            wrong.append(f"{text} at {transform}")
    return wrong


def close(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two places are one, but for rounding."""
    return all(abs(a - b) < SLACK for a, b in zip(one, other, strict=True))


def box(bar: dict[str, str]) -> tuple[float, ...]:
    """Place, width and height of a bar by its attributes; what is no number is NaN, which nothing equals."""
    return tuple(_number(bar.get(name)) for name in ("x", "width", "height"))


def parsed_nodes(nodes: list[Any]) -> Places:
    """Edges left, top, right, bottom of a treemap's nodes by name."""
    places: Places = {}
    for node in nodes:
        if isinstance(node, dict):
            x, y, dx, dy = (_number(node.get(key)) for key in ("x", "y", "dx", "dy"))
            places[str(node.get("name"))] = (x, y, x + dx, y + dy)
    return places


def parsed_cells(cells: list[Any]) -> list[list[Point]]:
    """Voronoi cells as polygons.

    Raises:
        AssertionError: they are no lists of points.
    """
    try:
        return [[(float(x), float(y)) for x, y in cell] for cell in cells]
    except (TypeError, ValueError) as error:
        raise AssertionError(f"report.json: expected Voronoi cells as lists of points [x, y]: {error}") from None


def tiling_errors(place: Places, drawing: Drawing) -> list[str]:
    """What is wrong with a treemap: areas off their values, nodes outside their parents, leaves that overlap."""
    values = {name: value for leaves in drawing.groups.values() for name, value in leaves.items()}
    parents = {name: group for group, leaves in drawing.groups.items() for name in leaves}
    parents |= dict.fromkeys(drawing.groups, "all")
    missing = sorted({"all", *parents} - place.keys())
    if missing:
        return [f"no node {name}" for name in missing]
    width, height = drawing.size
    wrong = [] if close(place["all"], (0, 0, width, height)) else [f"the root lies at {place['all']}"]
    unit = width * height / sum(values.values())
    for name, value in values.items():
        left, top, right, bottom = place[name]
        if not abs((right - left) * (bottom - top) - value * unit) < SLACK * width * height:
            wrong.append(f"{name} has the area {(right - left) * (bottom - top):.3f}, not {value * unit:.3f}")
    wrong += [f"{name} reaches out of {parent}" for name, parent in parents.items() if _overhang(place, name, parent)]
    wrong += [
        f"{one} and {other} overlap" for one, other in combinations(values, 2) if _overlap(place[one], place[other])
    ]
    return wrong


def cell_errors(cells: list[list[Point]], drawing: Drawing) -> list[str]:
    """Probes that do not lie in the cell of their nearest site, and in no other."""
    wrong = []
    for probe in drawing.probes:
        near = sorted(range(len(drawing.sites)), key=lambda index: math.dist(probe, drawing.sites[index]))
        first, second = (math.dist(probe, drawing.sites[index]) for index in near[:2])
        found = [index for index, cell in enumerate(cells) if _inside(probe, cell)]
        if second - first > SLACK and found != near[:1]:
            wrong.append(f"({probe[0]:.3f}, {probe[1]:.3f}) lies in the cells {found}, nearest is site {near[0]}")
    return wrong


def _inside(point: Point, polygon: list[Point]) -> bool:
    """By the crossings of a ray to the right."""
    (x, y), inside = point, False
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (y1 > y) != (y2 > y) and x < x1 + (y - y1) * (x2 - x1) / (y2 - y1):
            inside = not inside
    return inside


def _overhang(place: Places, name: str, parent: str) -> bool:
    (left, top, right, bottom), outer = place[name], place[parent]
    inner = left > outer[0] - SLACK and top > outer[1] - SLACK
    return not (inner and right < outer[2] + SLACK and bottom < outer[3] + SLACK)


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > SLACK and down > SLACK


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # whatever the machine sent
    except (TypeError, ValueError):
        return math.nan


def _names(rng: random.Random, count: int) -> list[str]:
    names: set[str] = set()
    while len(names) < count:
        names.add("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)))
    return rng.sample(sorted(names), count)


def _csv(table: dict[str, int]) -> bytes:
    return ("name,value\n" + "".join(f"{name},{value}\n" for name, value in table.items())).encode()
