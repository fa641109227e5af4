"""One SSH connection to the machine of a lease.

Promises a reviewer can check:
- the host key of the lease is the only one accepted; no key is learnt on first use or read from the host's files;
- no login but the lease's own key is offered: no agent, no key files, no passwords, no ~/.ssh/config;
- a failure of the connection, of whatever kind, is a `MachineLostError`;
- a guest that leaves a heartbeat unanswered is noticed, whatever one waits for: within `HEARTBEAT_S + SILENCE_S` at
  native speed, later on an emulated machine, which may be slow to answer and not dead.
"""

from __future__ import annotations

import base64
import io
import logging
import threading
from contextlib import suppress
from typing import NoReturn

import paramiko

from pytest_deploybench.errors import InfraError, MachineLostError
from pytest_deploybench.model import Lease

CONNECT_TIMEOUT_S = 15.0
HEARTBEAT_S = 10.0
SILENCE_S = 20.0
"""How long a guest may leave a heartbeat unanswered, at native speed."""
MOST_PATIENCE = 6.0
"""By how much at most the waiting for a slow machine is stretched: a dead one shall be noticed all the same."""

BROKEN = (paramiko.SSHException, EOFError, OSError)
"""What paramiko and sockets raise over a connection that is not there any more."""

_LOG = "pytest_deploybench.transport.paramiko"

# paramiko logs a traceback for each failed attempt to connect; here each failure becomes an error with one sentence.
logging.getLogger(_LOG).setLevel(logging.CRITICAL + 1)


class WrongHostError(MachineLostError):
    """Somebody else answers at the machine's address; waiting does not help."""


class Connection:
    """Made on first use, and made anew once when it turns out to be cut."""

    def __init__(self, lease: Lease) -> None:
        self.name = f"{lease.machine_id} at {lease.address.host}:{lease.address.port}"
        self._address = lease.address
        self._patience = min(max(lease.facts.speed_factor, 1.0), MOST_PATIENCE)
        self._client: paramiko.SSHClient | None = None

    def close(self) -> None:
        """Drop the connection; the next use makes a new one."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def session(self) -> paramiko.Channel:
        """A fresh channel for one command.

        Raises:
            MachineLostError: neither the present connection nor a new one gives one.
        """
        if self._client is not None:
            with suppress(*BROKEN):
                return self._transport().open_session(timeout=self._limit_s)
            self.close()
        try:
            return self._transport().open_session(timeout=self._limit_s)
        except BROKEN as error:
            self.lost("it opens no session", error)

    def tunnel(self, port: int) -> paramiko.Channel:
        """A channel to a port of the guest's loopback; raises one of `BROKEN` or MachineLostError."""
        there, here = ("127.0.0.1", port), ("127.0.0.1", 0)
        return self._transport().open_channel("direct-tcpip", there, here, timeout=self._limit_s)

    def lost(self, what: str, cause: BaseException | None = None) -> NoReturn:
        """Raise MachineLostError with one sentence."""
        why = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        why = f" ({why})" if cause is not None else ""
        raise MachineLostError(
            f"machine {self.name}: {what}{why}. Its console.log tells whether the guest is still alive."
        ) from cause

    @property
    def _limit_s(self) -> float:
        return CONNECT_TIMEOUT_S * self._patience

    def _transport(self) -> paramiko.Transport:
        if self._client is None:
            self._client = self._connect()
        transport = self._client.get_transport()
        if transport is None or not transport.is_active():
            raise EOFError("the connection was closed")
        return transport

    def _connect(self) -> paramiko.SSHClient:
        address = self._address
        known = address.host if address.port == 22 else f"[{address.host}]:{address.port}"
        kind, blob = address.host_key.split()[:2]
        client = paramiko.SSHClient()
        client.set_log_channel(_LOG)
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        client.get_host_keys().add(known, kind, paramiko.PKey.from_type_string(kind, base64.b64decode(blob)))
        try:
            client.connect(
                address.host,
                address.port,
                address.user,
                pkey=_login_key(address.login_key),
                allow_agent=False,
                look_for_keys=False,
                timeout=self._limit_s,
                banner_timeout=self._limit_s,
                auth_timeout=self._limit_s,
            )
        except InfraError:
            raise
        except paramiko.BadHostKeyException as error:
            raise WrongHostError(f"machine {self.name}: whoever answers there shows another host key.") from error
        except paramiko.AuthenticationException as error:
            self.lost("it refuses the login key of its lease", error)
        except Exception as error:  # a hostile peer can make paramiko raise more than its own exceptions
            self.lost("no connection can be made", error)
        finally:
            transport = client.get_transport()
            if transport is None or not transport.is_authenticated():
                client.close()
        watch = (transport, SILENCE_S * self._patience)
        threading.Thread(target=_watch, args=watch, name="ssh-heartbeat", daemon=True).start()
        return client


def _watch(transport: paramiko.Transport, silence_s: float) -> None:
    """Close a connection whose guest leaves a heartbeat unanswered, so that whoever waits on it learns of it.

    paramiko's own keepalives ask for no answer, and a dead guest may hide behind a network helper that lives.
    """
    with suppress(*BROKEN):
        while transport.is_active():
            alarm = threading.Timer(silence_s, transport.close)
            alarm.daemon = True
            alarm.start()
            try:
                transport.global_request("keepalive@openssh.com", wait=True)
            finally:
                alarm.cancel()
            transport.join(HEARTBEAT_S)


def _login_key(text: str) -> paramiko.PKey:
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with suppress(paramiko.SSHException, ValueError):
            return kind.from_private_key(io.StringIO(text))
    raise InfraError("the lease's login key is no private key in OpenSSH form (ed25519, ecdsa or rsa, no passphrase)")
