"""A machine that is this host, behind a throw-away sshd; a model that is a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_deploybench.transport import SshMachine
from tests.support.model_server import KEY, ModelServer, running_model_server
from tests.support.sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
def machine(sshd: Sshd) -> Iterator[SshMachine]:
    with SshMachine(sshd.lease) as connected:
        yield connected


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServer]:
    with running_model_server(key=KEY) as server:
        yield server


@pytest.fixture
def server(model_server: ModelServer) -> ModelServer:
    """The scripted model, with nothing said so far."""
    model_server.forget()
    return model_server
