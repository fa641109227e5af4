"""The `ssh` provider: the user's own hosts, leased one trial at a time.

inventory   the user's file -> hosts; every mistake in it is an error that says how to mend it
leases      which host is whose, on disk, across processes
reset       the user's own command that makes a host fresh again
provider    the life of a lease, from the claim to the proof that the host is fresh
"""
