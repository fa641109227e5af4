"""Whoever cannot make a machine of namespaces is told what is missing and how to get it, before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError, MissingToolError
from pytest_deploybench.providers.local import bootstrap
from pytest_deploybench.providers.rootfs import namespaces


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that do nothing, and nothing else on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (*namespaces.TOOLS, *bootstrap.TOOLS_WITHOUT_ROOT):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(bootstrap, "search_path", lambda: str(folder))
    monkeypatch.setattr(bootstrap, "SUBORDINATE_IDS", ())
    monkeypatch.setattr(namespaces, "TUN", tmp_path)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def without_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1001)


@pytest.mark.usefixtures("programs")
def test_a_host_with_everything_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    namespaces.check()
    without_root(monkeypatch)
    namespaces.check()


def test_a_missing_program_is_named_with_its_package(programs: Path) -> None:
    (programs / "pasta").unlink()
    with pytest.raises(MissingToolError, match="apt-get install passt"):
        namespaces.check()


def test_only_a_user_without_root_needs_the_id_mappers(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "newuidmap").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    namespaces.check()
    without_root(monkeypatch)
    with pytest.raises(MissingToolError, match="apt-get install uidmap"):
        namespaces.check()


@pytest.mark.usefixtures("programs")
def test_a_user_without_subordinate_ids_is_told_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_root(monkeypatch)
    monkeypatch.setattr(bootstrap, "SUBORDINATE_IDS", (tmp_path / "subuid",))
    with pytest.raises(MissingToolError, match=r"making a root file system a machine as .* usermod --add-subuids"):
        namespaces.check()


@pytest.mark.usefixtures("programs")
def test_a_host_without_the_tunnel_device_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "TUN", tmp_path / "tun")
    with pytest.raises(MissingToolError, match="modprobe tun"):
        namespaces.check()


def test_a_host_that_forbids_namespaces_is_told_by_its_own_words(programs: Path) -> None:
    (programs / "unshare").write_text("#!/bin/sh\necho 'unshare failed: Operation not permitted' >&2\nexit 1\n")
    with pytest.raises(MissingToolError, match=r"\(unshare failed: Operation not permitted\)"):
        namespaces.check()


def test_a_failed_command_is_an_error_with_its_last_words(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (programs / "tar").write_text("#!/bin/sh\necho 'tar: no space' >&2\nexit 2\n")
    (programs / "tar").chmod(0o755)
    with pytest.raises(InfraError, match="unpacking failed: tar: no space"):
        namespaces.run(["tar"], "unpacking")
