"""The gateway's process: where the key is, where it is not, and that nothing is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_deploybench.errors import InfraError
from pytest_deploybench.gateway import Budget, Gateway, GatewayClient, RetryPolicy
from tests.gateway.conftest import MODEL, PATIENCE_S, OpenAccount, Trial, specs
from tests.gateway.test_exchange import until
from tests.support.model_server import KEY, CutOff, ModelServer, RateLimited, Status, call, say

ROOT = Path(__file__).parents[2]


def program(*arguments: str, told: str = "") -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A process of `programs`, once it has said where it is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.programs", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(told)
    process.stdin.close()
    return process, json.loads(process.stdout.readline())


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(PATIENCE_S)
    assert process.stdout is not None
    process.stdout.close()


@pytest.fixture
def own(server: ModelServer, tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that the test may break."""
    with Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=tmp_path / "gateway.log") as gateway:
        gateway.open()
        yield gateway


def test_the_key_is_found_nowhere(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In no environment, command line, file, repr or message; and neither is a token but with its borrower."""
    monkeypatch.setenv("CANARY_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    log = tmp_path / "gateway.log"
    shown: list[str] = []
    server.play([call("bash", command="env"), RateLimited(), say(KEY), Status(400, {"error": KEY}), CutOff()])
    with Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=log) as gateway:
        endpoint = gateway.open()
        account = GatewayClient(endpoint).open_account("t", MODEL, Budget(), tmp_path / "t", lifetime_s=60)
        trial = Trial(account, tmp_path / "t")
        answers = [trial.ask(text="hello") for _ in range(4)]
        server.play([Status(401, {"error": {"message": f"wrong key {KEY}"}})])
        answers.append(trial.ask())
        process = psutil.Process(gateway.pid)
        for each in (process, *process.children(recursive=True)):
            shown += [each.name(), *each.cmdline(), *each.environ(), *each.environ().values()]
        shown += [repr(value) for value in (gateway, endpoint, account, account.statement(), vars(account))]
        shown += [answer.text for answer in answers if answer.status_code != 200]
        shown += [str(answer.headers) for answer in answers]
        statement = account.close()
        shown.append(repr(statement))
        assert "wrong key [redacted]" in str(statement.provider_down)
        shown += [path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
        assert any("hello" in text for text in shown), "the log was not looked at"
    shown += capfd.readouterr()
    assert [text[:200] for text in shown if KEY in text] == []
    for secret in (account.token, endpoint.authkey):
        assert [text[:200] for text in shown if secret in text and "_line" not in text] == []


@pytest.mark.parametrize("where", ["policy.patience_s", "keys.CANARY_KEY"])
def test_a_gateway_that_does_not_start_says_why_without_the_key(
    server: ModelServer, tmp_path: Path, where: str
) -> None:
    log = tmp_path / "gateway.log"
    broken: dict[str, Any] = {where: "long", "keys.CANARY_KEY": [KEY]}  # what another version might send
    policy = replace(RetryPolicy(), patience_s=broken.get("policy.patience_s", 1.0))
    with Gateway(specs(server.url), {"CANARY_KEY": broken["keys.CANARY_KEY"]}, log=log, policy=policy) as gateway:
        with pytest.raises(
            InfraError, match=r"the gateway to the models did not start\. It said: .*gateway\.log"
        ) as caught:
            gateway.open()
        said = "".join(traceback.format_exception(caught.value))
    assert where in log.read_text()
    assert KEY not in log.read_text() + said


def test_closing_leaves_no_process_no_socket_and_no_empty_log(own: Gateway, tmp_path: Path) -> None:
    process, folder = psutil.Process(own.pid), Path(own.open().address).parent
    account = GatewayClient(own.open()).open_account("t", MODEL, Budget(), tmp_path / "t", lifetime_s=60)
    assert folder.stat().st_mode & 0o777 == 0o700
    own.close()
    own.close()
    assert not process.is_running()
    assert not folder.exists()
    assert not (tmp_path / "gateway.log").exists()
    assert '"event": "closed"' in (tmp_path / "t" / "llm.jsonl").read_text()
    with pytest.raises(InfraError, match="has ended"):
        account.statement()
    with pytest.raises(InfraError, match="is closed"):
        own.open()


def test_a_killed_gateway_is_an_error_of_its_trials(own: Gateway, tmp_path: Path) -> None:
    client = GatewayClient(own.open())
    account = client.open_account("t", MODEL, Budget(), tmp_path / "t", lifetime_s=60)
    process = psutil.Process(own.pid)
    process.kill()
    process.wait(PATIENCE_S)
    with pytest.raises(InfraError, match=r"gateway to the models has ended.*gateway\.log"):
        account.statement()
    with pytest.raises(InfraError, match="has ended"):
        account.close()
    with pytest.raises(InfraError, match="has ended"):
        client.open_account("t", MODEL, Budget(), tmp_path / "t", lifetime_s=60)


def test_a_killed_controller_takes_its_gateway_along(server: ModelServer, tmp_path: Path) -> None:
    controller, said = program("controller", server.url, str(tmp_path / "gateway.log"), told=f"{KEY}\n")
    gateway = psutil.Process(said["pid"])
    kill(controller)
    until(lambda: not gateway.is_running() or gateway.status() == psutil.STATUS_ZOMBIE)
    assert not Path(said["address"]).parent.exists()


def test_the_account_of_a_killed_borrower_is_closed(gateway: Gateway, server: ModelServer, tmp_path: Path) -> None:
    endpoint = gateway.open()
    borrower, said = program("borrower", endpoint.address, endpoint.authkey, str(tmp_path))
    trial = Trial(_Known(**said), tmp_path)  # type: ignore[arg-type] # what is left of an account: where and by what
    assert trial.ask().status_code == 200
    kill(borrower)
    until(lambda: trial.ask().status_code == 401)
    assert trial.ask().json()["error"]["code"] == "token_revoked"
    until(lambda: any(line["event"] == "closed" for line in trial.lines()))


class _Known:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token


def test_a_ctrl_c_is_the_sessions_alone(own: Gateway, tmp_path: Path) -> None:
    assert own.pid is not None
    assert os.getsid(own.pid) != os.getsid(0)
    account = GatewayClient(own.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60)
    os.killpg(os.getpgid(own.pid), signal.SIGCONT)  # its group is its own: a Ctrl-C here would not reach it
    assert account.close().calls == 0


def test_two_sessions_have_two_gateways(own: Gateway, open_account: OpenAccount, tmp_path: Path) -> None:
    ours = GatewayClient(own.open()).open_account("t", MODEL, Budget(), tmp_path, lifetime_s=60)
    theirs = open_account()
    theirs.account.token = ours.token
    assert theirs.ask().status_code == 401


def test_plugin_and_borrowers_do_not_load_the_http_library() -> None:
    code = (
        "import sys, pytest_deploybench.plugin, pytest_deploybench.gateway;"
        "print([name for name in ('aiohttp', 'pydantic', 'yaml', 'requests') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == "[]"


def test_what_a_gateway_left_that_was_killed_with_its_session_goes_at_the_next_start(
    own: Gateway, server: ModelServer, tmp_path: Path
) -> None:
    place = Path(own.open().address).parent.parent
    left = Path(tempfile.mkdtemp(prefix="deploybench-gateway-", dir=place))
    for folder in (left, Path(own.open().address).parent):
        os.utime(folder, (0, 0))
    with Gateway(specs(server.url), {"CANARY_KEY": KEY}, log=tmp_path / "other.log") as other:
        other.open()
        assert not left.exists()
        assert Path(own.open().address).exists()
