"""The stand-in index of the tests of sources, and the plugin's project, for commands that end in them."""

from tests.plugin.conftest import project
from tests.sources.conftest import index, pip

__all__ = ["index", "pip", "project"]
