"""The one owner of every machine: it creates, journals, lends, destroys and sweeps.

    journal     every intent to create, on disk before the call; whose owner is dead
    admission   who may start now: first come, first served, by what the provider can really hold
    lending     the local authenticated socket between the owner and its borrowers
    shelf       machines that outlived their trial as disks
    owner       the Fleet: the life of each machine from request to removal

The owner lives in the session's controller; everybody else holds a `FleetClient` and, through it, leases.
"""

from pytest_deploybench.fleet.journal import Entry, Journal
from pytest_deploybench.fleet.lending import Endpoint, FleetClient
from pytest_deploybench.fleet.owner import Fleet
from pytest_deploybench.fleet.shelf import Shelf

__all__ = ["Endpoint", "Entry", "Fleet", "FleetClient", "Journal", "Shelf"]
