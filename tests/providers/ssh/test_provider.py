"""A host is one trial's at a time, fresh or not used at all, and whoever answers elsewhere is never taken for it.

The hosts are real SSH servers on the loopback; the reset command really replaces their homes.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_deploybench.errors import InfraError, UsageError
from pytest_deploybench.model import MachineState, ProviderOptions
from pytest_deploybench.providers.ssh.leases import Standing
from pytest_deploybench.providers.ssh.provider import SshProvider
from pytest_deploybench.transport import SshMachine
from tests.providers.ssh.own_hosts import SIZE, OwnHosts, failure, request
from tests.support.sshd import Sshd, make_key

PATIENCE_S = 60.0


# --- what it can host ------------------------------------------------------------------------------------------------


def test_a_refusal_says_what_each_host_falls_short_of(hosts: OwnHosts) -> None:
    hosts.add()
    hosts.add(cpus=1, labels=["gpu"])
    provider = hosts.provider()
    assert provider.refusal(SIZE) is None
    assert provider.refusal(replace(SIZE, accelerator="nvidia-t4", cpus=2)) == (
        f"no host of {hosts.file} suits: höst-1 has neither the label nvidia-t4 nor gpu; höst-2 has 1 of 2 CPUs"
    )
    with pytest.raises(InfraError, match="can be had for this machine: none suits"):
        provider.create(request("one", replace(SIZE, cpus=99)))
    assert provider.capacity.machines == 2


def test_without_an_inventory_the_user_learns_what_to_write(tmp_path: Path) -> None:
    provider = SshProvider(ProviderOptions(), print, state=tmp_path)
    for ask in (lambda: provider.capacity, lambda: provider.refusal(SIZE), lambda: provider.create(request("one"))):
        with pytest.raises(UsageError, match=r"key_file, host_key, .*--deploybench-inventory=FILE"):
            ask()
    provider.destroy("one")


def test_a_machine_kept_by_another_provider_is_not_mistaken_for_a_fresh_one(hosts: OwnHosts, tmp_path: Path) -> None:
    hosts.add()
    with pytest.raises(InfraError, match="was kept by another provider"):
        hosts.provider().create(replace(request("one"), kept=str(tmp_path)))
    assert hosts.records() == []


def test_a_lease_says_what_the_user_said_of_the_host(hosts: OwnHosts) -> None:
    server = hosts.add(speed_factor=1.5)
    provider = hosts.provider()
    lease = provider.create(request("one"))
    assert lease.address == server.lease.address
    assert (lease.facts.provider, lease.facts.speed_factor) == ("ssh", 1.5)
    assert "höst-1" in lease.facts.image
    record = hosts.leases.find("one")
    assert record is not None
    assert (record.purpose, record.standing) == ("run-7 task of one", Standing.LEASED)
    private = lease.address.login_key.splitlines()[2]
    provider.destroy("one")
    shown = [repr(lease), repr(provider.__dict__), *hosts.said, *(p.read_text() for p in hosts.state.iterdir())]
    assert not any(private in text for text in shown)


# --- resets ----------------------------------------------------------------------------------------------------------


def test_a_host_is_reset_before_it_is_used_again(hosts: OwnHosts) -> None:
    server = hosts.add()
    provider = hosts.provider()
    for machine_id in ("one", "two"):
        with SshMachine(provider.create(request(machine_id))) as machine:
            assert machine.get("~/trace", hosts.folder / "trace") is False
            machine.put(b"x", "~/trace")
        assert hosts.records() == ["höst-1 leased"]
        provider.destroy(machine_id)
        assert hosts.records() == []
        assert [path.name for path in server.home.iterdir()] == ["bin"]
    assert hosts.resets() == ["one", "two"]
    assert hosts.said[0] == "host höst-1: resetting it after run-7 task of one"


def test_a_host_whose_reset_fails_stays_out_of_the_pool_until_one_succeeds(hosts: OwnHosts) -> None:
    hosts.add(reset={"command": "[ -e mended ] || { echo no such snapshot; exit 3; }"})
    provider = hosts.provider()
    provider.create(request("one"))
    for _ in range(2):
        with pytest.raises(InfraError, match=r"höst-1 stays out of the pool, .*ended with status 3 .*no such snapshot"):
            provider.destroy("one")
    assert hosts.records() == ["höst-1 broken"]
    assert provider.capacity.machines == 0
    assert provider.refusal(SIZE) is None  # the infrastructure broke; that is no reason to skip a task
    with pytest.raises(InfraError, match=r"höst-1: its reset failed: .*no such snapshot.*remove") as caught:
        provider.create(request("two"))
    assert str(hosts.record()) in str(caught.value)

    (hosts.folder / "mended").touch()
    hosts.provider().destroy("one")
    assert hosts.records() == []
    assert provider.capacity.machines == 1


@pytest.mark.parametrize("fault", ["silent", "another key"])
def test_a_reset_counts_only_when_the_host_answers_with_its_key(hosts: OwnHosts, fault: str) -> None:
    server = hosts.add()
    options = ProviderOptions(inventory=str(hosts.file))
    provider = SshProvider(options, hosts.said.append, state=hosts.state, answer_within_s=0.0)
    provider.create(request("one"))
    server.stop()
    if fault == "another key":
        reinstall(server)
    words = {"silent": "it does not answer: .*no connection can be made", "another key": "another host key than the"}
    with pytest.raises(InfraError, match=f"höst-1 stays out of the pool, since its reset failed: .*{words[fault]}"):
        provider.destroy("one")
    assert hosts.resets() == ["one"]
    assert hosts.records() == ["höst-1 broken"]


def test_a_host_without_a_reset_is_used_once(hosts: OwnHosts) -> None:
    hosts.add(reset=None)
    provider = hosts.provider()
    assert provider.capacity.machines == 1
    provider.create(request("one"))
    provider.destroy("one")
    provider.destroy("one")
    later = hosts.provider()
    assert later.capacity.machines == 0
    for words in (str(later.refusal(SIZE)), str(failure(later, "two"))):
        assert "höst-1" in words
        assert "was used by run-7 task of one and has no reset command" in words
        assert f"Reinstall it and remove {hosts.record()}, or give it a reset in {hosts.file}" in words

    hosts.record().unlink()
    assert later.refusal(SIZE) is None
    later.create(request("two"))
    later.destroy("two")

    hosts.entries[0]["reset"] = {"command": "true"}
    hosts.write()
    assert hosts.provider().refusal(SIZE) is None
    assert hosts.provider().create(request("three")).machine_id == "three"


# --- who answers -----------------------------------------------------------------------------------------------------


def reinstall(server: Sshd) -> str:
    """Give a stopped server another host key and start it; the key's public half."""
    for path in (server.folder / "host_key", server.folder / "host_key.pub"):
        path.unlink()
    new_key = make_key(server.folder / "host_key")
    server.start()
    with SshMachine(replace(server.lease, address=replace(server.lease.address, host_key=new_key))) as machine:
        machine.wait_ready(PATIENCE_S)
    return new_key


def test_another_host_key_is_an_error_whose_remedy_works(hosts: OwnHosts) -> None:
    """The command that the error shows prints the key that the inventory needs."""
    server = hosts.add(reset=None)
    server.stop()
    new_key = reinstall(server)
    message = str(failure(hosts.provider(), "one"))
    assert f"whoever answers at {hosts.address()} shows another host key than the pinned one" in message
    assert f"write it as host_key of host höst-1 in {hosts.file}" in message
    assert hosts.records() == []

    [command] = re.findall(r"`(ssh-keyscan .*?)`", message)
    scanned = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert scanned.stdout.strip() == new_key
    hosts.entries[0]["host_key"] = scanned.stdout.strip()
    hosts.write()
    assert hosts.provider().create(request("one")).address.host_key == new_key


def test_a_host_that_does_not_answer_is_passed_over_and_not_used_up(hosts: OwnHosts) -> None:
    hosts.add(reset=None, cpus=2).stop()
    hosts.add()
    provider = hosts.provider()
    lease = provider.create(request("one"))
    assert lease.address == hosts.servers["höst-2"].lease.address
    assert hosts.records() == ["höst-2 leased"]
    provider.destroy("one")
    hosts.servers["höst-2"].stop()
    message = str(failure(provider, "two"))
    assert "höst-1: it does not answer: " in message
    assert "höst-2: it does not answer: " in message
    assert hosts.records() == []


def test_a_user_without_sudo_is_told_of(hosts: OwnHosts) -> None:
    server = hosts.add()
    (server.home / "bin" / "sudo").write_text("#!/bin/sh\nexit 1\n")
    message = str(failure(hosts.provider(), "one"))
    assert "may not use sudo without a password there" in message
    assert "/etc/sudoers.d" in message


def test_a_machine_runs_as_long_as_its_ssh_server_answers(hosts: OwnHosts) -> None:
    server = hosts.add()
    provider = hosts.provider()
    assert provider.state("one") is MachineState.LOST
    provider.create(request("one"))
    assert provider.state("one") is hosts.provider().state("one") is MachineState.RUNNING
    server.stop()
    assert provider.state("one") is MachineState.LOST
    port = server.lease.address.port
    with socket.create_server(("127.0.0.1", port)) as other:  # a network that answers for everybody
        answer = threading.Thread(target=lambda: other.accept()[0].sendall(b"HTTP/1.1 200 OK\r\n"))
        answer.start()
        assert provider.state("one") is MachineState.LOST
        answer.join()
    assert provider.console("one") == b""
