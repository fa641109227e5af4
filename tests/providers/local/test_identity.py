"""Every identity is fresh, and its secrets show nowhere by accident."""

from __future__ import annotations

import io

import paramiko
import pytest

from pytest_deploybench.providers.local import identity


def test_no_two_machines_share_anything() -> None:
    one, two = identity.fresh("a"), identity.fresh("a")
    assert one.host_key.public != two.host_key.public
    assert one.login_key.public != two.login_key.public
    assert one.host_key.public != one.login_key.public
    assert one.machine_id != two.machine_id
    assert one.seed != two.seed


def test_secrets_stay_out_of_reprs() -> None:
    who = identity.fresh("a")
    assert "PRIVATE" not in repr(who)
    assert repr(who.seed) not in repr(who)


def test_private_and_public_halves_belong_together() -> None:
    pair = identity.fresh("a").login_key
    key = paramiko.Ed25519Key.from_private_key(io.StringIO(pair.private))
    assert f"{key.get_name()} {key.get_base64()}" == pair.public


@pytest.mark.parametrize(
    ("machine_id", "hostname"),
    [
        ("db-20260101-abcd", "db-20260101-abcd"),
        ("Run_7.trial", "run-7-trial"),
        ("x" * 80, "x" * 63),
        ("...", "machine"),
    ],
)
def test_a_machine_is_named_after_its_id(machine_id: str, hostname: str) -> None:
    assert identity.fresh(machine_id).hostname == hostname
