"""How the pages look: Jinja's templates, one style sheet, one script, and the rules by which values enter them."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_deploybench.redact import printable
from pytest_deploybench.reports.html.log import cut
from pytest_deploybench.reports.layout import amount, dollars, duration, interval, partly, percent
from pytest_deploybench.reports.statistics import CONFIDENCE_LEVEL
from pytest_deploybench.reports.terminal_comparison import outcome

if TYPE_CHECKING:
    from jinja2 import Environment

_SHORT = 700
"""Characters of a message that are shown."""


@cache
def environment() -> Environment:
    """Jinja, set so that no value can become markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    made = Environment(
        loader=PackageLoader(__name__, ""),
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amount": amount,
        "dollars": dollars,
        "duration": duration,
        "interval": interval,
        "outcome": outcome,
        "partly": partly,
        "percent": percent,
        "rendered": Markup,  # only for what another template of this folder made
        "short": lambda text: cut(text, _SHORT),
    }
    style, script = ((files(__name__) / name).read_text("utf-8") for name in ("report.css", "report.js"))
    made.globals |= {
        "confidence": f"{CONFIDENCE_LEVEL * 100:.0f} %",
        "style": Markup(style),  # noqa: S704 - ours, and known to the page's policy by its digest
        "style_digest": _digest(style),
        "script": Markup(script),  # noqa: S704 - the same
        "script_digest": _digest(script),
    }
    return made


def _harmless(value: Any) -> Any:
    """What every value passes on its way into a template, before it is escaped."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    # Most text is: the question is much cheaper than the answer.
    return value if value.replace("\n", "").isprintable() else printable(value)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
