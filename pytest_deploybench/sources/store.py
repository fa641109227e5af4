"""The store of pinned sources: `<store>/<sha256>/<filename>`.

Promises a reviewer can check:
- a file gets its place in the store only as a whole, and after its sha256 was found to be the pinned one;
- what lies in its place already is checked again at each fetch, whoever put it there;
- nothing of a source is executed; cargo alone unpacks what it downloads, in a folder that is thrown away.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from filelock import FileLock

from pytest_deploybench.errors import SourceDigestError, SourceError
from pytest_deploybench.model import Registry, Source
from pytest_deploybench.ports import Progress
from pytest_deploybench.sources import crates, npm

Downloader = Callable[[Source, Path, Path, Progress], Path]
"""Takes a source, an empty folder for it, a folder to keep things between fetches, and progress; gives the file."""


def fetch(source: Source, store: Path, progress: Progress) -> Path:
    """The pinned archive in the store, downloaded if it is not there yet. Several processes may ask at once.

    Raises:
        SourceError: it cannot be downloaded; the message says why and where to put the file by hand.
        SourceDigestError: what the registry gave under this name is not the pinned file.
    """
    place = place_of(source, store)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / ".lock"):
        if place.exists():
            if verify(place):
                return place
            progress(f"{place} is not the pinned file (its sha256 differs); fetching it again")
        for stale in place.parent.glob(".fetching-*"):  # of a process that was killed
            shutil.rmtree(stale)
        progress(f"fetching {source.filename} of {source.name} {source.version}")
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetching-") as scratch:
            try:
                file = _DOWNLOADERS[source.registry](source, Path(scratch), store.absolute(), progress)
                _check(source, file)
            except SourceError as error:
                remedy = (
                    f"Or supply it yourself as {place}, or name a store that holds it: --deploybench-sources=FOLDER"
                )
                raise type(error)(f"{source.name} {source.version}: {error} {remedy}") from error
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
            file.replace(place)
    return place


def find(source: Source, store: Path) -> Path:
    """The pinned archive as it lies in the store. Nothing is fetched and nothing written.

    Raises:
        SourceError: it is not there.
        SourceDigestError: what is there is not the pinned file.
    """
    place = place_of(source, store)
    remedy = f"`deploybench sources fetch --dir {store}` puts it there, where there is a network."
    if not place.is_file():
        raise SourceError(f"{source.name} {source.version}: {place} is not there. {remedy}")
    if not verify(place):
        raise SourceDigestError(
            f"{source.name} {source.version}: {place} is not the pinned file: its sha256 differs. {remedy}"
        )
    return place


def place_of(source: Source, store: Path) -> Path:
    """Where a source lies in the store, or would.

    Raises:
        SourceError: the pin is malformed.
    """
    place = store.absolute() / source.sha256 / source.filename
    if not re.fullmatch(r"[0-9a-f]{64}", source.sha256) or place.name != source.filename or place.name in ("", ".."):
        raise SourceError(
            f"{source.name}: the pin is malformed: sha256 {source.sha256!r}, filename {source.filename!r}"
        )
    return place


def locate(registry: Registry, name: str, version: str, state: Path) -> Source:
    """Pin the source archive that a registry has of a version; `state` is where package lists may be kept.

    Raises:
        SourceError: it cannot be asked, or has none.
    """
    filename, digest = _LOCATORS[registry](name, version, state)
    return Source(registry, name, version, filename, digest)


def verify(path: Path) -> bool:
    """Whether a file of the store has the content that its folder is named after."""
    return sha256(path) == path.parent.name


def sha256(path: Path) -> str:
    """Hexadecimal digest of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check(source: Source, file: Path) -> None:
    found = sha256(file)
    if found != source.sha256:
        raise SourceDigestError(
            f"{source.filename} from the registry has the sha256 {found}, but {source.sha256} is pinned. Do not use "
            "it; if the pin in task.yaml is wrong, mend it and certify the task again."
        )


def _from_pypi(source: Source, folder: Path, _: Path, progress: Progress) -> Path:
    from pytest_deploybench.sources import pypi  # requests takes a while to import

    return pypi.download(source, folder, progress)


def _from_debian(source: Source, folder: Path, state: Path, progress: Progress) -> Path:
    from pytest_deploybench.sources import debian

    return debian.download(source, folder, state / ".apt", progress)


def _locate_in_pypi(name: str, version: str, _: Path) -> tuple[str, str]:
    from pytest_deploybench.sources import pypi

    return pypi.locate(name, version)


def _locate_in_debian(name: str, version: str, state: Path) -> tuple[str, str]:
    from pytest_deploybench.sources import debian

    return debian.locate(name, version, state / ".apt")


def _by_client(source: Source, folder: Path, _: Path, __: Progress) -> Path:
    file = _CLIENTS[source.registry](source.name, source.version, folder)
    if file.name != source.filename:
        raise SourceError(f"the registry calls its archive {file.name}, not {source.filename}.")
    return file


def _locate_by_client(download: Callable[[str, str, Path], Path], name: str, version: str, _: Path) -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as scratch:  # these registries list no sha256 for npm and cargo to show
        file = download(name, version, Path(scratch))
        return file.name, sha256(file)


_CLIENTS = {Registry.NPM: npm.download, Registry.CRATES: crates.download}
_LOCATORS: dict[Registry, Callable[[str, str, Path], tuple[str, str]]] = {
    Registry.PYPI: _locate_in_pypi,
    Registry.DEBIAN: _locate_in_debian,
    **{registry: partial(_locate_by_client, download) for registry, download in _CLIENTS.items()},
}
_DOWNLOADERS: dict[Registry, Downloader] = {
    Registry.PYPI: _from_pypi,
    Registry.DEBIAN: _from_debian,
    **dict.fromkeys(_CLIENTS, _by_client),
}
