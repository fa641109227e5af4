"""How the verifier asks a machine that an agent had: by the distribution's own programs."""

from __future__ import annotations

import shlex

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
"""Where the distribution's programs lie, and what an administrator adds does not."""


def by_system_tools(command: str) -> str:
    """A command line that runs a command by the distribution's programs.

    What the agent put into /usr/local, on a PATH, or into the start-up files of the login user's shell has no part in
    it. Whoever replaced the distribution's own files is not kept out: an agent is root on its machine.
    """
    fresh = f'/usr/bin/env -i HOME="$HOME" LC_ALL=C.UTF-8 PATH={SYSTEM_PATH}'
    return f"{fresh} /bin/bash --noprofile --norc -c {shlex.quote(command)}"
