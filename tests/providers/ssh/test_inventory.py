"""inventory: a file of the user's becomes hosts, and each mistake in it one sentence that says how to mend it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_deploybench.errors import UsageError
from pytest_deploybench.model import MachineSize
from pytest_deploybench.providers.ssh.inventory import Host, InventoryError, Reset, load
from tests.support.sshd import make_key

SIZE = MachineSize(cpus=4, memory_gb=8, disk_gb=50)


@pytest.fixture
def host_key(tmp_path: Path) -> str:
    (tmp_path / "keys").mkdir()
    make_key(tmp_path / "keys" / "login")
    return make_key(tmp_path / "keys" / "host")


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, host_key: str) -> Write:
    """Writes an inventory of one host with changes to its entry (None leaves a key out), and of further ones."""

    def write(*more: dict[str, Any], **changes: Any) -> Path:
        entry = {
            "name": "gpu1",
            "host": "gpu1.lab.example",
            "key_file": "keys/login",
            "host_key": host_key,
            "cpus": 16,
            "memory_gb": 64,
            "disk_gb": 500,
        }
        hosts = [entry | changes, *(entry | one for one in more)]
        content = {"hosts": [{key: value for key, value in host.items() if value is not None} for host in hosts]}
        file = tmp_path / "hosts.yaml"
        file.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
        return file

    return write


def error_of(file: Path) -> InventoryError:
    with pytest.raises(InventoryError) as caught:
        load(file)
    assert isinstance(caught.value, UsageError)
    assert str(caught.value).startswith(f"{file}: ")
    return caught.value


def test_what_is_left_out_has_a_value(write: Write, tmp_path: Path, host_key: str) -> None:
    file = write()
    [host] = load(file).hosts
    assert host == Host(
        name="gpu1",
        host="gpu1.lab.example",
        port=22,
        user="agent",
        key_file=tmp_path / "keys" / "login",
        host_key=host_key,
        labels=(),
        cpus=16,
        memory_gb=64,
        disk_gb=500,
        speed_factor=1.0,
        reset=None,
        inventory=file,
    )


def test_everything_that_can_be_said(write: Write, tmp_path: Path, host_key: str) -> None:
    [host, other] = load(
        write(
            {"name": "二号機", "reset": {"command": ["./reimage", "ü"]}, "host": "2001:db8::1"},
            name="höst",
            port=2222,
            user="jürgen",
            host_key=f"{host_key} root@gpu1",
            labels=["gpu", "nvidia-tesla-t4"],
            speed_factor=1.5,
            key_file=str(tmp_path / "keys" / "login"),
            reset={"command": "./reimage gpu1", "limit_s": 60},
        )
    ).hosts
    assert (host.name, host.port, host.user, host.labels) == ("höst", 2222, "jürgen", ("gpu", "nvidia-tesla-t4"))
    assert (host.speed_factor, host.host_key) == (1.5, host_key)
    assert host.reset == Reset(("/bin/sh", "-c", "./reimage gpu1"), 60)
    assert (other.name, other.reset, other.address) == ("二号機", Reset(("./reimage", "ü"), 1800), "2001:db8::1:22")


@pytest.mark.parametrize(
    ("changes", "key", "problem", "remedy"),
    [
        ({"name": None}, "name", "field required", "Give a name"),
        ({"name": "a\nb"}, "name", "control character", "Give a name"),
        ({"host": "-oProxyCommand=evil"}, "host", "not begin with a dash", "DNS name or address"),
        ({"host": "a b"}, "host", "one word", "DNS name or address"),
        ({"port": 0}, "port", "greater than or equal to 1", "leave the key out for 22"),
        ({"user": ""}, "user", "at least 1 character", "sudo without a password"),
        ({"cpus": 0}, "cpus", "greater than or equal to 1", "whole number of cores"),
        ({"memory_gb": "much"}, "memory_gb", "valid number", "in gigabytes"),
        ({"disk_gb": 1.5}, "disk_gb", "valid integer", "whole gigabytes"),
        ({"speed_factor": 0.5}, "speed_factor", "greater than or equal to 1", "at least 1"),
        ({"labels": "gpu"}, "labels", "valid tuple", "a list such as [gpu]"),
        ({"reset": "./reimage"}, "reset", "valid dictionary", "Give command and limit_s"),
        ({"reset": {"command": ""}}, "reset.command", "valid tuple", "shell command, or a list"),
        ({"reset": {"command": "x\0y"}}, "reset.command.2", "zero byte", "shell command, or a list"),
        ({"reset": {"command": "x", "limit_s": 0}}, "reset.limit_s", "greater than 0", "1800"),
        ({"reset": {"command": "x", "limit": 9}}, "reset.limit", "unknown key", "Did you mean 'limit_s'?"),
        ({"hostkey": "x", "host_key": None}, "hostkey", "unknown key", "Did you mean 'host_key'?"),
    ],
    ids=str,
)
def test_a_mistake_names_host_key_and_remedy(
    write: Write, changes: dict[str, Any], key: str, problem: str, remedy: str
) -> None:
    error = error_of(write(**changes))
    assert error.host == (changes.get("name", "gpu1") or "number 1")
    assert error.key == key
    assert problem in error.problem
    assert remedy in error.remedy


def test_a_host_without_a_pinned_key_is_refused_with_the_way_to_pin_it(write: Write) -> None:
    file = write(port=2222, host_key=None)
    error = error_of(file)
    assert (error.host, error.key) == ("gpu1", "host_key")
    assert error.problem == "no host key is pinned, and none is ever learnt by connecting"
    assert "`ssh-keyscan -t ed25519 -p 2222 gpu1.lab.example 2>/dev/null | cut -d' ' -f2-`" in error.remedy
    assert f"write it as host_key of host gpu1 in {file}" in error.remedy


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda key: "gpu1.lab.example " + key, "leave that out"),
        (lambda _: "ssh-ed25519", "no public host key"),
        (lambda key: "SHA256:1234 " + key.split()[1], "no public host key"),
        (lambda key: key[:-3], "damaged"),
        (lambda key: key[:40], "cut short or of another type"),
        (lambda key: key.replace("ssh-ed25519", "ssh-rsa"), "cut short or of another type"),
    ],
)
def test_what_is_no_host_key_is_refused(
    write: Write, host_key: str, damage: Callable[[str], str], problem: str
) -> None:
    error = error_of(write(host_key=damage(host_key)))
    assert problem in error.problem
    assert "ssh-keyscan" in error.remedy


def test_no_key_material_is_shown(write: Write, tmp_path: Path) -> None:
    private = (tmp_path / "keys" / "login").read_text()
    secret = private.splitlines()[2]
    assert secret not in str(error_of(write(host_key=private)))
    assert secret not in str(error_of(write(key_file=private)))
    assert secret not in repr(load(write()))


@pytest.mark.parametrize(
    ("prepare", "problem", "remedy"),
    [
        ("rm keys/login", "there is no such file", "ssh-keygen -t ed25519"),
        ("rm keys/login; mkdir keys/login", "not a file that you may read", "ssh-keygen"),
        ("chmod 640 keys/login", "other users of this machine may read the private key", "chmod 600"),
        ("ssh-keygen -q -p -N secret-words -f keys/login", "has a passphrase", "without a passphrase"),
        ("cp keys/login.pub keys/login", "no private key in OpenSSH form", "without .pub"),
        ("head -c 5000 /dev/urandom >keys/login", "no private key in OpenSSH form", "without .pub"),
    ],
)
def test_an_unusable_key_file_says_what_to_do(
    write: Write, tmp_path: Path, prepare: str, problem: str, remedy: str
) -> None:
    file = write()
    subprocess.run(["sh", "-c", prepare], cwd=tmp_path, check=True)
    error = error_of(file)
    assert (error.host, error.key) == ("gpu1", "key_file")
    assert problem in error.problem
    assert str(tmp_path / "keys" / "login") in error.problem
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("content", "key", "problem"),
    [
        (b"", "inventory", "keys and values are expected, not nothing"),
        (b"- gpu1\n", "inventory", "not list"),
        (b"hosts: []\n", "hosts", "at least 1 item"),
        (b"hosts: [gpu1]\n", "hosts", "valid dictionary"),
        (b"hots: []\n", "hots", "unknown key"),
        (b"hosts:\n  - name: a: b\n", "line 2", "not YAML"),
        (b"hosts: \xff\n", "inventory", "not UTF-8 text"),
    ],
)
def test_a_file_of_another_form(tmp_path: Path, content: bytes, key: str, problem: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_bytes(content)
    error = error_of(file)
    assert error.key == key
    assert problem in error.problem


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    assert "no such file" in error_of(tmp_path / "none.yaml").problem
    assert "cannot be read (Is a directory)" in error_of(tmp_path).problem


@pytest.mark.parametrize(
    ("second", "key"), [({"host": "other"}, "name"), ({"name": "other", "host": "GPU1.lab.example"}, "host")]
)
def test_a_host_stands_there_once(write: Write, second: dict[str, Any], key: str) -> None:
    error = error_of(write(second))
    assert error.key == key
    assert "twice, also as host gpu1" in error.problem


@pytest.mark.parametrize(
    ("size", "labels", "lack"),
    [
        (SIZE, [], None),
        (MachineSize(16, 64, 500), [], None),
        (replace(SIZE, cpus=17, memory_gb=65), [], "has 16 of 17 CPUs, has 64 of 65 GB of memory"),
        (replace(SIZE, disk_gb=501), [], "has 500 of 501 GB of disk"),
        (replace(SIZE, accelerator="nvidia-t4"), [], "has neither the label nvidia-t4 nor gpu"),
        (replace(SIZE, accelerator="nvidia-t4"), ["nvidia-l4"], "has neither the label nvidia-t4 nor gpu"),
        (replace(SIZE, accelerator="nvidia-t4"), ["nvidia-t4"], None),
        (replace(SIZE, accelerator="nvidia-t4"), ["gpu"], None),
    ],
)
def test_a_shortfall_is_said_in_numbers(write: Write, size: MachineSize, labels: list[str], lack: str | None) -> None:
    [host] = load(write(labels=labels)).hosts
    assert host.shortfall(size) == lack


def test_a_scarce_host_is_the_last_choice(write: Write) -> None:
    more: list[dict[str, Any]] = [
        {"name": "large", "host": "large", "cpus": 32},
        {"name": "small", "host": "small", "cpus": 4, "memory_gb": 8},
        {"name": "tiny", "host": "tiny", "cpus": 1},
    ]
    inventory = load(write(*more, labels=["gpu"], cpus=4))
    assert [host.name for host in inventory.fitting(SIZE)] == ["small", "large", "gpu1"]
