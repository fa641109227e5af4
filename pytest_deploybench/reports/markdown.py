"""Shows a run in Markdown, as GitHub shows it at the top of a job.

Promises a reviewer can check: never more than the bytes that are given, and what was left out is said; all that comes
from a record stands within an HTML table, on one line and escaped, where nothing is read as Markdown, as a link or as
somebody's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pytest_deploybench.model import RunRecord
from pytest_deploybench.redact import printable
from pytest_deploybench.reports.baseline import ALL, Baseline
from pytest_deploybench.reports.layout import amount, dollars, duration, interval, partly, percent
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL
from pytest_deploybench.reports.summary import Case, Standing, Summary, summarise

_CUT = "\n**The rest is left out, since a job may show no more; the records hold all.**\n"


def render(run: RunRecord, most_bytes: int, baseline: Baseline | None = None) -> str:
    """The report of a run in at most `most_bytes` bytes of UTF-8; empty where not even its beginning fits."""
    summary = summarise(run)
    written: list[str] = []
    room = most_bytes - len(_CUT)
    for block in _blocks(summary, baseline):
        start, *rows = block
        end = rows.pop()
        room -= len(f"{start}{end}".encode())
        if room < 0:
            return "".join([*written, _CUT]) if written else ""
        written.append(start)
        for row in rows:
            room -= len(row.encode())
            if room < 0:
                return "".join([*written, end, _CUT])
            written.append(row)
        written.append(end)
    return "".join(written)


def _blocks(summary: Summary, baseline: Baseline | None) -> Iterator[list[str]]:
    """Tables as beginning, rows and end, so that one can be cut between two rows."""
    titles = _TITLES if baseline is None else (*_TITLES, f"rate in {baseline.title}")
    yield _table("### deploybench", titles, [_standing(each, baseline) for each in summary.standings])
    if summary.failed:
        rows = [[case.task, case.contestant, case.cause, case.folder] for case in summary.failed]
        yield _table(f"#### FAILED ({len(rows)})", ("task", "who", "cause", "evidence"), rows)
    if summary.invalid:
        rows = [_invalid(case) for case in summary.invalid]
        title = f"#### INVALID ({len(rows)}), not counted in the rate"
        yield _table(title, ("task", "who", "cause", "what to do", "evidence"), rows)


_TITLES = (
    "",
    "passed/valid",
    "rate",
    f"{CONFIDENCE_LEVEL * 100:.0f} % interval",
    "INVALID",
    "rate with INVALID",
    "“done” was true",
    "tokens a trial",
    "cost a trial",
    "machine time",
)


def _standing(standing: Standing, baseline: Baseline | None) -> list[str]:
    tally, claims = standing.tally, standing.claims
    published = [percent(baseline.rates.get(standing.contestant, {}).get(ALL))] if baseline else []
    return [
        standing.contestant,
        f"{tally.passed}/{tally.valid}",
        percent(tally.rate),
        interval(standing.interval),
        str(tally.invalid),
        percent(tally.rate_with_invalid_failed),
        f"{claims.was_done}/{claims.said_done}",
        partly(amount(standing.tokens.mean), standing.tokens, tally.total),
        partly(dollars(standing.cost_usd.mean), standing.cost_usd, tally.total),
        duration(standing.machine_s),
        *published,
    ]


def _invalid(case: Case) -> list[str]:
    return [case.task, case.contestant, case.cause, case.remedy, case.folder]


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head = "".join(f"<th>{name}</th>" for name in columns)
    lines = (f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    # An empty line would end the HTML, so there is one in front of it and one behind, and none within.
    return [f"{title}\n\n<table>\n<tr>{head}</tr>\n", *lines, "</table>\n\n"]


def _cell(text: str) -> str:
    """Text from anywhere as one harmless line of a table."""
    return escape(" ".join(printable(text).split()))
