"""A build that cannot work says so before it starts; one that failed says what to do."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.providers.local import bootstrap

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ordinary user's host on which nothing is missing: the folder that holds its programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in bootstrap.TOOLS | bootstrap.TOOLS_WITHOUT_ROOT:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    for name in ("keyring", "ids"):
        (tmp_path / name).write_text("ann:100000:65536\n")
    monkeypatch.setattr(bootstrap, "search_path", lambda: str(programs))
    monkeypatch.setattr(bootstrap, "KEYRING", tmp_path / "keyring")
    monkeypatch.setattr(bootstrap, "SUBORDINATE_IDS", (tmp_path / "ids",))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    monkeypatch.setattr("shutil.disk_usage", lambda _place: Usage(10**12, 0, 10**12))
    return programs


def test_nothing_is_missing(user: Path, tmp_path: Path) -> None:
    bootstrap.check_host(tmp_path, 1 << 30)


@pytest.mark.parametrize(
    ("program", "package"),
    [("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs"), ("newuidmap", "uidmap")],
)
def test_a_missing_program_is_named_with_its_package(user: Path, tmp_path: Path, program: str, package: str) -> None:
    (user / program).unlink()
    with pytest.raises(MissingToolError, match=rf"apt-get install {package}.*deploybench doctor --fix"):
        bootstrap.check_host(tmp_path, 1 << 30)


def test_root_needs_no_id_mapping(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    (user / "newuidmap").unlink()
    (tmp_path / "ids").unlink()
    bootstrap.check_host(tmp_path, 1 << 30)


@pytest.mark.usefixtures("user")
def test_missing_archive_keys_are_named(tmp_path: Path) -> None:
    (tmp_path / "keyring").unlink()
    with pytest.raises(MissingToolError, match="debian-archive-keyring"):
        bootstrap.check_host(tmp_path, 1 << 30)


@pytest.mark.usefixtures("user")
def test_a_user_without_subordinate_ids_is_told_how_to_get_them(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("annabel:100000:65536\n")
    with pytest.raises(MissingToolError, match=r"usermod --add-subuids .* ann"):
        bootstrap.check_host(tmp_path, 1 << 30)


@pytest.mark.usefixtures("user")
def test_a_full_disk_is_found_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _place: Usage(10**12, 10**12, 10**9))
    with pytest.raises(InfraError, match=r"needs 2\.0 GB .* has 1\.0 GB.*TMPDIR"):
        bootstrap.check_host(tmp_path, 1 << 30)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("E: Failed to fetch ... Could not resolve 'archive'", "cannot be reached"),
        ("E: Failed to fetch ... No space left on device", "disk is full"),
        ("W: GPG error: ... NO_PUBKEY 0E98404D386FA1D9", "debian-archive-keyring"),
        ("E: newuidmap 4711 0 100000 65536 failed", "build as root"),
        ("E: something nobody foresaw", ""),
    ],
)
def test_the_last_words_of_a_failed_build_lead_to_advice(said: str, advice: str) -> None:
    given = bootstrap.remedy(["I: installing", said])
    assert advice in given
    assert bool(given) == bool(advice)
