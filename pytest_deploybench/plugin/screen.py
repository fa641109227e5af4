"""pytest's terminal, shared: lines of ours among pytest's own, and a region below them that changes all the time.

pytest prints from one thread, we from another, and a line of pytest may stay open for long (dots, or the name of a
check that runs). So all that pytest prints passes through here, and one lock orders it. Promises a reviewer can check:
- a line of ours from another thread waits until pytest has been silent for a moment, so that it parts no traceback;
- the region is drawn below the cursor and the cursor put back, so pytest goes on where it was; it goes before pytest
  prints anything, and nothing of the terminal's settings stays changed, however the process ends;
- while pytest captures what a test prints, nothing is written: it would land among that test's output.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

_SILENCE_S = 0.3
_TALLEST = 12
_RESERVED = 4
"""Lines of the terminal that the region leaves to pytest."""

_ERASE_BELOW = "\x1b[J"
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_DOWN, _UP = "\x1bD", "\x1b[{}A"
"""Down scrolls at the bottom and keeps the column, which a line feed does not."""
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"
_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    """The terminal of one session.

    Args:
        config: of the session; it must have a terminal reporter.
        captured: whether tests run in this process: what is printed then gets through between `open` and `shut` only.
    """

    def __init__(self, config: pytest.Config, *, captured: bool) -> None:
        self._reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._writer: Any = config.get_terminal_writer()
        self._open = not captured
        self._lock = threading.RLock()
        self._drawn = False
        self._printed_at = 0.0
        self.stirred = threading.Event()
        """Set whenever pytest has printed and the region is gone."""
        # pytest 8 has no `write_raw`; later ones have parts that use it directly.
        self._originals = {name: way for name in ("write", "write_raw") if (way := getattr(self._writer, name, None))}
        for name, original in self._originals.items():
            setattr(self._writer, name, self._guarded(original))
        undisturbed = not (captured and config.option.capture == "no")
        terminal = self._writer._file.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.live = bool(terminal and undisturbed and type(self._reporter) is pytest.TerminalReporter)
        """Whether there is a region. Not where tests print as they like (`-s`), nor under another's reporter."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines of the region."""
        columns, lines = shutil.get_terminal_size()
        return columns, max(0, min(_TALLEST, lines - _RESERVED))

    def open(self) -> None:
        """From here on what is printed gets through."""
        with self._lock:
            self._open = True
        self.stirred.set()

    def shut(self) -> None:
        """From here on it does not."""
        with self._lock:
            self._erase()
            self._open = False

    def line(self, text: str, **markup: bool) -> None:
        """Print a line in the thread in which pytest prints."""
        with self._lock:
            self._reporter.ensure_newline()
            if self._writer.width_of_current_line:  # xdist's dots, which pytest's own look misses
                self._writer.line()
            self._writer.line(text, **markup)
            self._writer.flush()

    def aside(self, text: str) -> bool:
        """Print a line from another thread, if it disturbs nothing at this moment; whether it was printed."""
        with self._lock:
            if not self._open or time.monotonic() - self._printed_at < _SILENCE_S:
                return False
            self.line(text)
            return True

    def show(self, lines: Sequence[str]) -> None:
        """Draw the region anew."""
        with self._lock:
            if not self._open or not self.live or not lines:
                return
            room = _DOWN * len(lines) + _UP.format(len(lines))
            dim, plain = (_DIM, _PLAIN) if self._writer.hasmarkup else ("", "")
            drawn = "".join(f"\r\n{dim}{line}{plain}" for line in lines)
            self._raw(f"{_ERASE_BELOW}{room}{_SAVE}{_NO_WRAP}{drawn}{_WRAP}{_RESTORE}")
            self._drawn = True

    def close(self) -> None:
        """Leave the terminal to pytest alone; may be called again."""
        self.shut()
        with self._lock:
            for name, original in self._originals.items():
                setattr(self._writer, name, original)

    def _guarded(self, original: Any) -> Any:
        def write(*args: Any, **options: Any) -> None:
            with self._lock:
                self._erase()
                self._printed_at = time.monotonic()
                original(*args, **options)
            self.stirred.set()

        return write

    def _erase(self) -> None:
        if self._drawn:
            self._raw(_ERASE_BELOW)
            self._drawn = False

    def _raw(self, text: str) -> None:
        encoding = self._writer._file.encoding or "utf-8"  # `LANG=C` knows no other letters than its own
        self._writer._file.write(text.encode(encoding, "replace").decode(encoding))
        self._writer._file.flush()
