"""What an agent said, did and saw, step by step: trajectory.json of each trial, in ATIF v1.7.

words    pure: what a model was told and what it said, in each of the four dialects
atif     pure: the gateway's log, the scaffold's events and the agent's log -> one trajectory
files    reads these of a trial's folder and writes trajectory.json beside them
"""

from pytest_deploybench.trajectory.files import FILENAME, write

__all__ = ["FILENAME", "write"]
