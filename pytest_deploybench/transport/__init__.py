"""SSH: run, put, get, forward. The only way to a machine, and its host key is always pinned."""

from pytest_deploybench.transport.inspection import SYSTEM_PATH, by_system_tools, testinfra_host
from pytest_deploybench.transport.machine import SshMachine

__all__ = ["SYSTEM_PATH", "SshMachine", "by_system_tools", "testinfra_host"]
