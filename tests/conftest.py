"""A machine that is this host, behind a throw-away sshd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_deploybench.transport import SshMachine
from tests.support.sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def machine(sshd: Sshd) -> Iterator[SshMachine]:
    with SshMachine(sshd.lease) as connected:
        yield connected
