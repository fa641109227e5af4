"""Downloads one package of a JavaScript registry through npm, as the host has it configured.

Promises a reviewer can check:
- npm's own configuration says which registry is asked and how; its cache is left as it is;
- only an exact version of a registry's package is asked for, never a folder, an address or a repository, of which npm
  would run scripts: so none runs.
"""

from __future__ import annotations

import re
from pathlib import Path

from pytest_deploybench.errors import SourceError
from pytest_deploybench.sources import client

_NAME = re.compile(r"(@[a-z\d][\w.-]*/)?[a-z\d][\w.-]*", re.ASCII | re.IGNORECASE)
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?", re.ASCII)


def download(name: str, version: str, folder: Path) -> Path:
    """Put the package's archive, by the name that npm gives it, into an empty folder.

    Raises:
        SourceError: the pin is none of a package, this host has no npm, or the registry has no such version.
    """
    if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version)):
        raise SourceError(f"{name!r} {version!r} is no package with an exact version, such as d3 with 3.0.0.")
    client.require("npm", "Install Node.js with npm, on Debian `apt-get install npm`.")
    command = (
        "npm",
        "pack",
        "--ignore-scripts",
        "--no-update-notifier",
        f"--cache={folder}/cache",
        f"{name}@{version}",
    )
    done = client.run(*command, cwd=folder)
    file = next(folder.glob("*.tgz"), None)
    if done.returncode != 0 or file is None:
        raise SourceError(f"npm does not give it ({client.complaint(done)}).")
    return file
