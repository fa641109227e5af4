"""Who a machine of this host is: its name, its keys and its randomness, made anew for every machine."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass, field

USER = "agent"
_SEED_BYTES = 512


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


def _key_pair() -> KeyPair:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode())
