"""The doctor names what is missing with its package, installs exactly that, and says so when it cannot.

The host is real but its PATH is ours: programs come and go in a folder, and apt-get is a script that leaves a note.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_deploybench import doctor
from pytest_deploybench.cli import main
from pytest_deploybench.doctor import State
from pytest_deploybench.errors import MissingToolError
from pytest_deploybench.providers.local import bootstrap

APT = """\
#!/bin/sh
echo "$@" >> {log}
case "$1" in install) shift; for package; do case $package in
    passt) : > {bin}/passt; /bin/chmod +x {bin}/passt;;
    broken) exit 100;;
esac; done;; esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH; all tools are in it but passt."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in [tool.program for tool in doctor.TOOLS if tool.program not in ("passt", "apt-get")]:
        (folder / name).write_text("#!/bin/sh\n")
    (folder / "apt-get").write_text(APT.format(log=tmp_path / "apt.log", bin=folder))
    (folder / "env").write_text('#!/bin/sh\nshift; exec "$@"\n')
    (folder / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
    for program in folder.iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(doctor, "SBIN", ())
    monkeypatch.setattr(bootstrap, "KEYRING", folder)
    return folder


def missing(cache: Path) -> dict[str, doctor.Diagnosis]:
    return {one.name: one for one in doctor.examine(cache) if one.state is State.MISSING and one.package}


def test_what_is_missing_is_named_with_its_package(programs: Path, tmp_path: Path) -> None:
    assert missing(tmp_path)["passt"].package == "passt"
    (programs / "qemu-img").unlink()
    assert missing(tmp_path)["qemu-img"].package == "qemu-utils"


def test_only_the_tests_ask_for_an_ssh_server(programs: Path, tmp_path: Path) -> None:
    (programs / "sshd").unlink()
    assert "sshd" not in missing(tmp_path)
    assert "sshd" in {one.name for one in doctor.examine(tmp_path, for_tests=True) if one.state is State.MISSING}


def test_fix_installs_exactly_what_is_missing(programs: Path, tmp_path: Path) -> None:
    assert doctor.fix(missing(tmp_path).values()) == ["passt"]
    assert (tmp_path / "apt.log").read_text().splitlines() == [
        "update",
        "install --yes --no-install-recommends passt",
    ]
    assert missing(tmp_path) == {}
    assert doctor.fix([]) == []


def test_an_optional_package_that_apt_lacks_costs_nothing_else(programs: Path, tmp_path: Path) -> None:
    (programs / "chromium-headless-shell").unlink()
    (browser,) = [one for one in doctor.examine(tmp_path, for_tests=True) if one.name == "chromium-headless-shell"]
    assert browser.state is State.WARNING
    assert "chromium-headless-shell" not in {one.name for one in doctor.examine(tmp_path)}
    unknown = doctor.Diagnosis("x", State.WARNING, "y", "broken")
    assert doctor.fix([*missing(tmp_path).values(), unknown]) == ["passt"]
    assert (tmp_path / "apt.log").read_text().splitlines()[1:] == [
        "install --yes --no-install-recommends passt",
        "install --yes --no-install-recommends broken",
    ]


def test_without_apt_the_packages_are_named_to_install_by_hand(programs: Path, tmp_path: Path) -> None:
    (programs / "apt-get").unlink()
    with pytest.raises(MissingToolError, match=r"Install these by hand: .*passt"):
        doctor.fix(missing(tmp_path).values())


def test_an_apt_that_fails_is_reported_with_the_command(programs: Path) -> None:
    with pytest.raises(MissingToolError, match=r"apt-get install .*broken` failed.*by hand: broken"):
        doctor.fix([doctor.Diagnosis("x", State.MISSING, "y", "broken")])


def test_a_full_disk_is_a_note_and_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DISK_NEEDED_GB", 10**9)
    (disk,) = [one for one in doctor.examine(tmp_path / "not" / "there") if one.name == "disk"]
    assert disk.state is State.WARNING
    assert str(tmp_path) in disk.detail


def test_the_command_ends_with_status_1_and_the_remedy(programs: Path) -> None:
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1
    assert "passt: connects them to the network" in done.output
    assert "deploybench doctor --fix" in done.output
    assert os.fspath(programs) in done.output, "what is there is shown with its place"
