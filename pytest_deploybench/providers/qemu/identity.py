"""What makes a restored guest a machine of its own: one shell script, made here, run once as root.

Every guest restored from a saved state wakes up as the same machine at the same moment. The script gives it the right
time, a host key, a login key, a machine-id, a name and randomness of its own, and only then starts the SSH server, which
the image keeps off and without keys until here.

The script holds secrets: it travels over an anonymous socket, and the guest removes it after the run.
"""

from __future__ import annotations

import base64
import secrets
import shlex
import time
import uuid
from dataclasses import dataclass, field

USER = "agent"
_SEED_BYTES = 512

_SCRIPT = """\
set -eu
umask 077
date --utc --set=@{now} >/dev/null
python3 -I -S - <<'PYTHON'
import base64, fcntl, struct
seed = base64.b64decode({seed!r})
with open("/dev/urandom", "wb") as device:
    fcntl.ioctl(device, 0x40085203, struct.pack("ii", 8 * len(seed), len(seed)) + seed)  # RNDADDENTROPY
    fcntl.ioctl(device, 0x5207)  # RNDRESEEDCRNG: the next byte already differs from every sibling's
PYTHON
rm -f /var/lib/systemd/random-seed
echo {machine_id} > /etc/machine-id
chmod 444 /etc/machine-id
echo {hostname} > /etc/hostname
hostname {hostname}
printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' {hostname} > /etc/hosts
chmod 644 /etc/hostname /etc/hosts
rm -f /etc/ssh/ssh_host_*
cat > /etc/ssh/ssh_host_ed25519_key <<'KEY'
{host_private}KEY
install -d -o {user} -g {user} -m 700 /home/{user}/.ssh
echo {login_public} > /home/{user}/.ssh/authorized_keys
chown {user}:{user} /home/{user}/.ssh/authorized_keys
systemctl --no-reload --quiet enable ssh.service 2>/dev/null
systemctl start ssh.service
"""


@dataclass(frozen=True)
class KeyPair:
    """An SSH key pair in OpenSSH form."""

    private: str = field(repr=False)
    public: str


@dataclass(frozen=True)
class Identity:
    """Who a machine is. The login key exists in memory only and opens this one machine."""

    hostname: str
    host_key: KeyPair
    login_key: KeyPair
    machine_id: str
    seed: bytes = field(repr=False)


def fresh(machine_id: str) -> Identity:
    """A new identity for a machine; keys and randomness come from the host."""
    hostname = "".join(c if c.isalnum() else "-" for c in machine_id.lower())[:63].strip("-") or "machine"
    return Identity(hostname, _key_pair(), _key_pair(), uuid.uuid4().hex, secrets.token_bytes(_SEED_BYTES))


def script(identity: Identity) -> str:
    """The shell script that makes the guest this machine, from the moment at which it is sent."""
    return _SCRIPT.format(
        now=f"{time.time():.6f}",
        seed=base64.b64encode(identity.seed).decode(),
        machine_id=identity.machine_id,
        hostname=identity.hostname,
        host_private=identity.host_key.private,
        login_public=shlex.quote(identity.login_key.public),
        user=USER,
    )


def _key_pair() -> KeyPair:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())
