"""The Python index is the one that pip is configured to use, and no code of a source runs."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from pytest_deploybench.errors import SourceError
from pytest_deploybench.model import Registry, Source
from pytest_deploybench.sources import fetch, pypi, verify
from tests.support.index import Index
from tests.support.sshd import free_port


def quiet(line: str) -> None:
    """Nobody listens."""


def test_an_index_that_speaks_html_will_do(index: Index, source: Source, store: Path) -> None:
    index.html = True
    assert verify(fetch(source, store, quiet))


def test_a_further_index_is_asked_when_the_first_has_nothing(
    index: Index, source: Source, store: Path, pip: pytest.MonkeyPatch
) -> None:
    pip.setenv("PIP_INDEX_URL", index.url.replace("/simple/", "/simple/nothing/here/"))
    pip.setenv("PIP_EXTRA_INDEX_URL", index.url)
    assert verify(fetch(source, store, quiet))


def test_configuration_files_and_environment_take_precedence_as_in_pip(tmp_path: Path, pip: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://a/\ntimeout = 3\ncert = /c\n[download]\nindex-url = https://b/\n")
    pip.setenv("PIP_CONFIG_FILE", str(file))
    pip.setenv("PIP_CERT", "/d")
    settings = pypi.pip_settings()
    assert {name: settings[name] for name in ("index-url", "timeout", "cert")} == {
        "index-url": "https://b/",
        "timeout": "3",
        "cert": "/d",
    }


def test_a_python_without_pip_goes_by_the_environment(pip: pytest.MonkeyPatch) -> None:
    pip.setattr(pypi.sys, "executable", "/bin/false")  # type: ignore[attr-defined]
    pip.setenv("PIP_INDEX_URL", "https://mine/")
    assert pypi.pip_settings()["index-url"] == "https://mine/"


@pytest.mark.parametrize(
    ("name", "filename", "complaint"),
    [
        (
            "demo-tool",
            "demo_tool-7.7.tar.gz",
            r"no file demo_tool-7\.7\.tar\.gz; source archives of versions 0\.9, 1\.0",
        ),
        ("no-such-thing", "x-1.tar.gz", "no project no-such-thing"),
    ],
)
def test_what_an_index_lacks_is_named(index: Index, store: Path, name: str, filename: str, complaint: str) -> None:
    with pytest.raises(SourceError, match=complaint):
        fetch(Source(Registry.PYPI, name, "7.7", filename, "0" * 64), store, quiet)


def test_an_index_that_cannot_be_reached_is_named_without_its_password(
    source: Source, store: Path, pip: pytest.MonkeyPatch
) -> None:
    pip.setenv("PIP_INDEX_URL", f"http://me:hunter22@127.0.0.1:{free_port()}/simple/")
    with pytest.raises(SourceError, match=r"127\.0\.0\.1") as caught:
        fetch(source, store, quiet)
    assert "hunter22" not in str(caught.value)


def test_no_index_means_none(source: Source, store: Path, index: Index, pip: pytest.MonkeyPatch) -> None:
    pip.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(SourceError, match="no-index"):
        fetch(source, store, quiet)
    assert index.asked == []


def test_no_code_of_a_source_runs(index: Index, store: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    setup = f"open({str(canary)!r}, 'w')".encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        entry = tarfile.TarInfo("trap-1.0/setup.py")
        entry.size = len(setup)
        tar.addfile(entry, io.BytesIO(setup))
    data = archive.getvalue()
    index.projects["trap"] = {"trap-1.0.tar.gz": data}
    fetch(Source(Registry.PYPI, "trap", "1.0", "trap-1.0.tar.gz", hashlib.sha256(data).hexdigest()), store, quiet)
    assert not canary.exists()


@pytest.mark.network
def test_a_pinned_project_of_the_real_index(store: Path) -> None:
    pin = "3432bb74ea9c1e0c0553fc5079f1e8a703307489d3e9ffd4adcf0152d38d6966"
    source = Source(Registry.PYPI, "libsvm-official", "3.35.0", "libsvm_official-3.35.0.tar.gz", pin)
    assert verify(fetch(source, store, quiet))
