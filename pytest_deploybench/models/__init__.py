"""Which models there are: what a name on the command line means, where its API is, which key it needs, what it costs.

spec        the nouns, standard library only
catalogue   reads known.yaml of this package and the user's models.yaml, resolves names, finds keys
"""

from pytest_deploybench.models.spec import Dialect, ModelSpec, Price, Rates

__all__ = ["Dialect", "ModelSpec", "Price", "Rates"]
