"""The Python environments in which scaffolds live: far from this one, made at first use, shared by all sessions.

Promises a reviewer can check: an environment that is being made is never used and one that is in use never changed
(its folder is named after what is in it, and it counts only with its mark); two sessions make it once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_deploybench import folders
from pytest_deploybench.errors import MissingToolError
from pytest_deploybench.model import Readiness
from pytest_deploybench.ports import Progress

INSTALL_TIMEOUT_S = 3600.0
LOOK_TIMEOUT_S = 60.0
_COMPLETE = "complete"


@dataclass(frozen=True)
class Scaffold:
    """What an agent's program needs to run in."""

    name: str
    requirements: tuple[str, ...]
    pythons: tuple[str, ...]
    """Versions that will do, the best first."""
    module: str
    """Whose being there shows that the environment is whole."""
    size: str
    """For people, before they wait."""

    @property
    def variable(self) -> str:
        """Names an interpreter that has all of it already, for hosts without a package registry."""
        return f"DEPLOYBENCH_{self.name.upper().replace('-', '_')}_PYTHON"

    @property
    def folder(self) -> Path:
        """Where its environment is, or will be."""
        text = "\n".join((*self.requirements, *self.pythons))
        return folders.cache() / "scaffolds" / f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def _python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def _made(self) -> bool:
        return (self.folder / _COMPLETE).is_file() and self._python.exists()

    def interpreter(self) -> Path:
        """The interpreter of an environment that `prepare` has made.

        Raises:
            MissingToolError: it is not there (any more).
        """
        given = os.environ.get(self.variable)
        if not given and not self._made:
            raise MissingToolError(f"the environment of {self.name} vanished from {self.folder}. Start the run again")
        return Path(given) if given else self._python

    def prepare(self, progress: Progress) -> None:
        """Make the environment, unless it is there.

        Raises:
            MissingToolError: there is no fitting Python and no uv, or the packages cannot be installed.
        """
        if self._given() is not None or self._made:
            return
        from filelock import FileLock

        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self.folder}.lock"):
            if self._made:
                return
            progress(f"installing {self.name} into {self.folder} ({self.size}; once, some minutes)")
            shutil.rmtree(self.folder, ignore_errors=True)
            self._make()
            (self.folder / _COMPLETE).touch()
            progress(f"{self.name} is installed")

    def readiness(self) -> Readiness:
        """How far `prepare` has to go."""
        try:
            given = self._given()
        except MissingToolError as error:
            return Readiness(False, str(error))
        if given or self._made:
            return Readiness(True, f"installed, with {given or self._python}")
        base = self._base()
        if base or shutil.which("uv"):
            return Readiness(
                True, f"installs itself at first use ({self.size}) with {base or 'a Python that uv fetches'}"
            )
        return Readiness(False, self._no_python())

    def _given(self) -> Path | None:
        text = os.environ.get(self.variable)
        if not text:
            return None
        look = [text, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({self.module!r}) is None)"]
        if not _succeeds(look):
            raise MissingToolError(
                f"{self.variable}={text}: this Python has no {self.module!r}. Name one that has "
                f"{' '.join(self.requirements)}, or unset the variable to have them installed"
            )
        return Path(text)

    def _base(self) -> str | None:
        """A Python on this host that will do."""
        if f"{sys.version_info.major}.{sys.version_info.minor}" in self.pythons:
            return sys.executable
        # Some of what is found only tells that the version is not installed, so each is tried.
        candidates = (path for version in self.pythons for path in _pythons(version))
        return next((path for path in candidates if _succeeds([path, "-c", "import venv, ensurepip"])), None)

    def _make(self) -> None:
        base, uv = self._base(), shutil.which("uv")
        if uv:  # it needs a tenth of pip's time
            steps = [[uv, "venv", "-q", "--python", base or self.pythons[0], str(self.folder)]]
            steps += [[uv, "pip", "install", "-q", "--compile-bytecode", "--python", str(self._python)]]
        elif base:
            steps = [[base, "-m", "venv", str(self.folder)], [str(self._python), "-m", "pip", "install", "-q"]]
        else:
            raise MissingToolError(self._no_python())
        steps[-1] += self.requirements
        log = Path(f"{self.folder}.log")
        for step in steps:
            with log.open("ab") as output:
                try:
                    subprocess.run(
                        step,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=output,
                        timeout=INSTALL_TIMEOUT_S,
                        check=True,
                    )
                except (OSError, subprocess.SubprocessError) as error:
                    raise MissingToolError(
                        f"{self.name} could not be installed: {type(error).__name__}. What was said is in {log}. Mend "
                        f"it, or set {self.variable} to a Python that has {' '.join(self.requirements)}"
                    ) from error

    def _no_python(self) -> str:
        return (
            f"{self.name} needs Python {' or '.join(self.pythons)}, which this host lacks. Install one, or uv, which "
            f"fetches it; or set {self.variable} to a Python that has {' '.join(self.requirements)}"
        )


def _pythons(version: str) -> Iterator[str]:
    """Where interpreters of this version may be: in PATH, with pyenv, uv, and others that install them. None is run."""
    from findpython.providers import ALL_PROVIDERS

    for kind in ALL_PROVIDERS.values():
        for python in place.find_pythons() if (place := kind.create()) else ():
            if python.executable.name == f"python{version}":
                yield str(python.executable)


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOOK_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
