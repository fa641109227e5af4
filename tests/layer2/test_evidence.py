"""Evidence comes from the files of a machine, not from what its agent made of the tools there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

from pytest_deploybench.layer2 import evidence
from pytest_deploybench.transport import SshMachine, testinfra_host
from tests.support.elf_files import elf_file
from tests.support.sshd import Sshd


@pytest.fixture
def host(machine: SshMachine) -> Host:
    return testinfra_host(machine, sudo=False)


@pytest.fixture
def patched_tools(sshd: Sshd) -> Iterator[None]:
    """Tools that lie, where a login finds them first."""
    tools = [sshd.home / "bin" / name for name in ("cat", "test", "readlink", "stat", "dpkg")]
    for tool in tools:
        tool.write_text("#!/bin/sh\necho lie\n")
        tool.chmod(0o755)
    yield
    for tool in tools:
        tool.unlink()


@pytest.mark.usefixtures("patched_tools")
def test_patched_tools_are_not_asked(host: Host, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(elf_file({"version": 335}))
    link = tmp_path / "link"
    link.symlink_to(program)
    assert evidence.resolve(host, str(link)) == str(program)
    assert evidence.package_owner(host, str(link)) is None
    assert evidence.symbols(host, str(link)) == {"version"}
    assert evidence.integer(host, str(link), "version") == 335
    assert evidence.contains(host, str(link), b"version")


def test_what_is_no_program_has_nothing_to_tell(host: Host, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        assert evidence.symbols(host, str(path)) == frozenset()
        assert evidence.integer(host, str(path), "version") is None
        assert not evidence.contains(host, str(path), b"version")
