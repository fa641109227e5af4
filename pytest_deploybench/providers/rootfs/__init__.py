"""Throw-away root file systems in namespaces of this host, for the authors of tasks."""
