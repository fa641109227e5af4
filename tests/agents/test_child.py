"""child: an agent's program never outlives the session that runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

from tests.support.sessions import SOON_S, eventually

SESSION = """\
import sys
from pathlib import Path
from pytest_deploybench.agents.child import Launch, run_child
home = Path(sys.argv[1])
child = Launch(["sh", "-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 3600"])
run_child(child, home, home, out=print, err=print, end_now=lambda: False)
"""


def test_it_dies_with_a_session_that_is_killed(tmp_path: Path) -> None:
    session = subprocess.Popen([sys.executable, "-c", SESSION, str(tmp_path)])
    try:
        eventually((tmp_path / "pid").exists, SOON_S, "the program to run")
        program = psutil.Process(int((tmp_path / "pid").read_text()))
        assert program.is_running()
    finally:
        session.kill()
        session.wait()
    eventually(lambda: not program.is_running(), SOON_S, "the program to end")
