"""Debian sources come through the host's own apt, which is left as it is."""

from __future__ import annotations

import dataclasses
import hashlib
import platform
import shutil
from pathlib import Path

import pytest

from pytest_deploybench.errors import SourceDigestError, SourceError
from pytest_deploybench.model import Registry, Source
from pytest_deploybench.sources import debian, fetch, verify
from tests.support.sshd import free_port

ORIG = b"upstream's archive" * 100
FILENAME = "demo_1.0.orig.tar.gz"


def quiet(line: str) -> None:
    """Nobody listens."""


@pytest.fixture
def source() -> Source:
    return Source(Registry.DEBIAN, "demo", "1.0-1", FILENAME, hashlib.sha256(ORIG).hexdigest())


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """apt on this host with nothing but one archive, in a folder; gives its list of archives."""
    if shutil.which("apt-get") is None:
        pytest.fail("these tests talk to a real apt, which only Debian and its relatives have", pytrace=False)
    archive, lists = tmp_path / "archive", tmp_path / "lists"
    archive.mkdir()
    lists.mkdir()
    files = {FILENAME: ORIG, "demo_1.0-2.dsc": b"dsc", "demo_1.0-2.debian.tar.xz": b"packaging"}
    for name, data in files.items():
        (archive / name).write_bytes(data)

    def sums(kind: str) -> str:
        return "".join(f"\n {hashlib.new(kind, data).hexdigest()} {len(data)} {name}" for name, data in files.items())

    (archive / "Sources").write_text(
        "Package: demo\nBinary: demo\nVersion: 1.0-2\nArchitecture: any\nFormat: 3.0 (quilt)\nDirectory: .\n"
        f"Files:{sums('md5')}\nChecksums-Sha256:{sums('sha256')}\n\n"
    )
    (lists / "sources.list").write_text(f"deb [trusted=yes allow-insecure=yes] file:{archive} ./\n")
    (lists / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{lists}/sources.list"; Dir::Etc::sourceparts "{lists}/parts/";\n'
        f'APT::Update::Post-Invoke {{"touch {lists}/canary";}};\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(lists / "apt.conf"))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "trixie"})
    return lists / "sources.list"


def test_a_source_is_fetched_though_the_host_has_only_binaries_configured(
    apt: Path, source: Source, store: Path
) -> None:
    path = fetch(source, store, quiet)
    assert path.read_bytes() == ORIG
    assert not path.is_symlink()
    assert sorted(file.name for file in path.parent.iterdir()) == [".lock", FILENAME]


def test_no_hook_of_the_hosts_apt_runs(apt: Path, source: Source, store: Path) -> None:
    fetch(source, store, quiet)
    assert not (apt.parent / "canary").exists()


def test_another_content_under_the_pinned_name_is_not_taken(apt: Path, source: Source, store: Path) -> None:
    other = dataclasses.replace(source, sha256="0" * 64)
    with pytest.raises(SourceDigestError, match=rf"{FILENAME} with the sha256 {source.sha256}, but {'0' * 64} is"):
        fetch(other, store, quiet)


def test_a_version_that_the_archive_dropped_is_named(apt: Path, source: Source, store: Path) -> None:
    old = dataclasses.replace(source, version="0.9-1", filename="demo_0.9.orig.tar.gz", sha256="0" * 64)
    with pytest.raises(SourceError, match=r"holds demo_0\.9\.orig\.tar\.gz .*; they offer versions 1\.0-2\."):
        fetch(old, store, quiet)


def test_a_package_that_the_archive_dropped_is_named(apt: Path, store: Path) -> None:
    gone = Source(Registry.DEBIAN, "gone", "3.0-1", "gone_3.0.orig.tar.xz", "0" * 64)
    with pytest.raises(SourceError, match=r"they do not know the package\. Archives drop old versions") as caught:
        fetch(gone, store, quiet)
    assert str(store / gone.sha256 / gone.filename) in str(caught.value)


def test_an_archive_that_cannot_be_reached(apt: Path, source: Source, store: Path) -> None:
    apt.write_text(f"deb http://127.0.0.1:{free_port()}/debian bookworm main\n")
    with pytest.raises(SourceError, match=r"cannot read the archive's lists.*127\.0\.0\.1"):
        fetch(source, store, quiet)


def test_a_host_without_apt(source: Source, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceError, match=r"no apt-get.*supply it yourself"):
        fetch(source, store, quiet)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deb http://a/ubuntu noble main universe", ["deb-src http://a/ubuntu noble main universe"]),
        ("deb-src http://a/ubuntu noble main", ["deb-src http://a/ubuntu noble main"]),
        ("# deb http://a/debian trixie main", []),
        ("deb [arch=amd64 signed-by=/k.gpg] http://a/x ./", ["deb-src [arch=amd64 signed-by=/k.gpg] http://a/x ./"]),
        (
            "deb http://a/debian trixie main",
            ["deb-src http://a/debian bookworm main", "deb-src http://a/debian trixie main"],
        ),
        (
            "deb http://a/debian-security trixie-security main",
            ["deb-src http://a/debian-security trixie-security main"],
        ),
    ],
)
def test_one_line_lists_ask_for_sources_and_for_the_pinned_release(line: str, expected: list[str]) -> None:
    assert debian.source_lists(line, "", {"trixie", "stable"})[0].splitlines() == (expected or [""])


def test_deb822_lists_ask_for_sources_and_for_the_pinned_release() -> None:
    text = (
        "Types: deb\n# a remark\nURIs: http://a/debian\nSuites: trixie trixie-updates\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n\n"
        "Types: deb deb-src\nURIs: http://b/x\nSuites: ./\nEnabled: no\n"
    )
    first, second = debian.source_lists("", text, {"trixie"})[1].strip().split("\n\n")
    assert first.splitlines()[0] == "Types: deb-src"
    assert "Suites: bookworm trixie trixie-updates" in first
    assert first.endswith(" .\n abc")
    assert second == "Types: deb-src\nURIs: http://b/x\nSuites: ./\nEnabled: no"


@pytest.mark.network
@pytest.mark.parametrize("where", ["debian", "elsewhere"])
def test_a_pinned_package_of_the_real_archive(store: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where == "elsewhere":  # as on a host of another distribution, which finds Debian through mmdebstrap
        monkeypatch.setattr(debian, "_host_lists", lambda: ("", ""))
        monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "ubuntu"})
    pin = "5f54157828908fdddc0175721628b51ba91f64ae725b2d4cf81dba2eee38930a"
    source = Source(Registry.DEBIAN, "spin", "6.5.2+dfsg-1", "spin_6.5.2+dfsg.orig.tar.xz", pin)
    assert verify(fetch(source, store, quiet))
