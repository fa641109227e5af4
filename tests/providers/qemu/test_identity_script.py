"""The script that carries an identity is a program that Python accepts."""

from __future__ import annotations

import ast

from pytest_deploybench.providers.local import identity
from pytest_deploybench.providers.qemu import identity_script


def test_the_script_is_sound_and_says_when_it_was_sent() -> None:
    who = identity.fresh("a")
    script = identity_script.script(who)
    first = ast.parse(script).body[0]
    assert isinstance(first, ast.Assign)
    facts = ast.literal_eval(first.value)
    assert facts["seed"] == who.seed
    assert facts["host_private"] == who.host_key.private
    assert identity_script.script(who) != script  # the time has moved on
