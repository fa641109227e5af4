"""Downloads one file of a project from the Python index that pip is configured to use on this host.

pip itself is only asked for its configuration: `pip download` would run the setup code of a source archive to learn
its metadata, and nothing of a source is executed here.
"""

from __future__ import annotations

import ast
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pypi_simple
import requests
from packaging.version import InvalidVersion, Version
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from pytest_deploybench.errors import SourceError
from pytest_deploybench.model import Source
from pytest_deploybench.ports import Progress
from pytest_deploybench.redact import redact

_Answer = TypeVar("_Answer")

TRIES = 3
"""How often a download that breaks off is begun anew."""
PIP_TIMEOUT_S = 60.0


def download(source: Source, folder: Path, progress: Progress) -> Path:
    """Put the source's file into `folder`, unchecked.

    Raises:
        SourceError: no configured index has it or could be asked.
    """
    return _ask(lambda index, timeout: _from_index(source, index, folder, timeout, progress))


def locate(name: str, version: str) -> tuple[str, str]:
    """File name and sha256, as the index gives them, of the source archive of a project's version.

    Raises:
        SourceError: no configured index has it, could be asked, or gives a digest.
    """
    return _ask(lambda index, timeout: _sdist(_page(index, name, timeout), version))


def _ask(question: Callable[[pypi_simple.PyPISimple, float], _Answer]) -> _Answer:
    """The answer of the first index, of those that pip is configured to use, that has one."""
    settings = pip_settings()
    indexes = [*settings.get("index-url", pypi_simple.PYPI_SIMPLE_ENDPOINT).split()]
    indexes += settings.get("extra-index-url", "").split()
    if "no-index" in settings:
        raise SourceError("pip is configured to use no index here (no-index).")
    timeout = float(settings.get("timeout", settings.get("default-timeout", "15")))
    complaints = []
    with _session(settings, indexes) as session:
        for index in indexes:
            try:
                return question(pypi_simple.PyPISimple(index, session=session), timeout)
            except (requests.RequestException, pypi_simple.UnsupportedContentTypeError, SourceError) as error:
                complaints.append(redact(f"{index}: {error}"))
    raise SourceError(f"the Python index does not give it ({'; '.join(complaints)}).")


def pip_settings() -> dict[str, str]:
    """pip's options as its configuration files and environment set them, by their long names."""
    listed: dict[str, dict[str, str]] = {"global": {}, "download": {}, ":env:": {}}
    command = [sys.executable, "-m", "pip", "config", "list"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PIP_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):  # a Python without pip has no configuration but the environment
        listed[":env:"] = {
            name[4:].lower().replace("_", "-"): value for name, value in os.environ.items() if name.startswith("PIP_")
        }
    else:
        for line in answer.stdout.splitlines():
            key, _, value = line.partition("=")
            section, _, option = key.partition(".")
            if section in listed:
                listed[section][option] = ast.literal_eval(value)
    return {option: value for section in listed.values() for option, value in section.items()}


def _page(index: pypi_simple.PyPISimple, name: str, timeout: float) -> pypi_simple.ProjectPage:
    try:
        return index.get_project_page(name, timeout=timeout)
    except pypi_simple.NoSuchProjectError as error:
        raise SourceError(f"it has no project {name}") from error


def _sdist(page: pypi_simple.ProjectPage, version: str) -> tuple[str, str]:
    package = next((each for each in _sdists(page) if _same(each.version, version)), None)
    if package is None:
        raise SourceError(f"it has no source archive of version {version}; {_offer(page)}")
    if "sha256" not in package.digests:
        raise SourceError(f"it gives no sha256 of {package.filename}; fetch the file yourself and run sha256sum on it")
    return package.filename, package.digests["sha256"]


def _same(found: str | None, wanted: str) -> bool:
    try:
        return found is not None and Version(found) == Version(wanted)  # 3.35 is also called 3.35.0
    except InvalidVersion:
        return found == wanted


def _sdists(page: pypi_simple.ProjectPage) -> list[pypi_simple.DistributionPackage]:
    return [package for package in page.packages if package.package_type == "sdist"]


def _offer(page: pypi_simple.ProjectPage) -> str:
    return f"source archives of versions {', '.join(sorted({package.version or '?' for package in _sdists(page)}))}"


def _from_index(
    source: Source, index: pypi_simple.PyPISimple, folder: Path, timeout: float, progress: Progress
) -> Path:
    page = _page(index, source.name, timeout)
    package = next((package for package in page.packages if package.filename == source.filename), None)
    if package is None:
        raise SourceError(f"it has no file {source.filename}; {_offer(page)}")
    target = folder / source.filename
    for remaining in reversed(range(TRIES)):
        try:
            index.download_package(package, target, verify=False, timeout=timeout)
        except requests.RequestException as error:
            if not remaining:
                raise
            progress(redact(f"the download of {source.filename} broke off ({error}); again"))
        else:
            break
    return target


def _session(settings: Mapping[str, str], indexes: list[str]) -> requests.Session:
    session = requests.Session()
    patient = Retry(total=4, connect=2, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504))
    session.mount("https://", _SystemTrust(max_retries=patient))
    session.mount("http://", HTTPAdapter(max_retries=patient))
    if proxy := settings.get("proxy"):
        session.proxies = {"http": proxy, "https": proxy}
    if certificate := settings.get("cert"):
        session.verify = certificate
    if client := settings.get("client-cert"):
        session.cert = client
    trusted = set(settings.get("trusted-host", "").split())
    if any({urlsplit(index).hostname, urlsplit(index).netloc.rpartition("@")[2]} & trusted for index in indexes):
        session.verify = False
    return session


class _SystemTrust(HTTPAdapter):
    """Trusts what the host's own certificate store trusts, as pip does, beyond what requests brings along."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **kwargs)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        return super().proxy_manager_for(proxy, ssl_context=ssl.create_default_context(), **kwargs)
