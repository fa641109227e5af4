"""SSH: run, put, get, forward. The only way to a machine, and its host key is always pinned."""

from pytest_deploybench.transport.inspection import testinfra_host
from pytest_deploybench.transport.machine import SshMachine

__all__ = ["SshMachine", "testinfra_host"]
