"""Shows a run, or the comparison of two, as one HTML file that needs nothing but itself.

Promises a reviewer can check: pure, records and evidence in, text out; the file loads nothing, and its
Content-Security-Policy lets it run one script and one style sheet, both known by their digest; every value passes
`templates._harmless` and Jinja's escaping, so nothing from a guest or a model can become markup, hide or reorder
anything; no link is made of anything but our own numbers; all is readable without the script.

page, comparison         what is told, in which order
evidence, log, trajectory  what trials left, and which part of it is most worth showing
charts                   places what is drawn
packing                  keeps the file small
templates                how it looks
"""

from pytest_deploybench.reports.html.comparison import render_comparison
from pytest_deploybench.reports.html.evidence import Evidence
from pytest_deploybench.reports.html.log import Line, Log
from pytest_deploybench.reports.html.page import render
from pytest_deploybench.reports.html.trajectory import Trajectory, read_trajectory

__all__ = ["Evidence", "Line", "Log", "Trajectory", "read_trajectory", "render", "render_comparison"]
