"""Downloads one crate of the Rust registry through cargo, as the host has it configured.

Promises a reviewer can check:
- cargo's own configuration says which registry is asked and how; its home, with the cache, is left as it is;
- no code of a crate runs: cargo only unpacks it with what it depends on, in the folder given, and reads manifests.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from pytest_deploybench.errors import SourceError
from pytest_deploybench.sources import client

_NAME = re.compile(r"[a-z][\w-]*", re.ASCII | re.IGNORECASE)
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?", re.ASCII)
_CONFIGURATION = ("config.toml", "config", "credentials.toml", "credentials")

_MANIFEST = """\
[package]
name = "download"
version = "0.0.0"
edition = "2018"

[lib]
path = "lib.rs"

[dependencies]
{name} = {{ version = "={version}", default-features = false }}

[workspace]
"""
"""A package that wants nothing but the crate, since only a package's dependencies are fetched from wherever the
configuration says; it belongs to no workspace around it."""


def download(name: str, version: str, folder: Path) -> Path:
    """Put the crate's archive, by the name that cargo gives it, somewhere into an empty folder.

    Raises:
        SourceError: the pin is none of a crate, this host has no cargo, or the registry has no such version.
    """
    if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version)):
        raise SourceError(f"{name!r} {version!r} is no crate with an exact version, such as egg with 0.9.5.")
    client.require("cargo", "Install Rust with cargo, on Debian `apt-get install cargo`.")
    (folder / "Cargo.toml").write_text(_MANIFEST.format(name=name, version=version))
    (folder / "lib.rs").touch()
    done = client.run("cargo", "fetch", cwd=folder, CARGO_HOME=str(_home(folder)))
    file = next(folder.glob(f"*/registry/cache/*/{name}-{version}.crate"), None)
    if done.returncode != 0 or file is None:
        raise SourceError(f"cargo does not give it ({client.complaint(done)}).")
    return file


def _home(folder: Path) -> Path:
    """A home for cargo that holds nothing but this host's configuration of it."""
    own, home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")), folder / "home"
    home.mkdir()
    for name in _CONFIGURATION:
        if (own / name).is_file():
            (home / name).symlink_to((own / name).absolute())
    return home
