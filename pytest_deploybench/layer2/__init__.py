"""What a task module uses to state its claims: a challenge, the experiment on it, and evidence on the machine."""

from pytest_deploybench.layer2 import evidence
from pytest_deploybench.layer2.challenge import Challenge
from pytest_deploybench.layer2.experiment import Experiment

__all__ = ["Challenge", "Experiment", "evidence"]
