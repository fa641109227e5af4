"""Fetches pinned sources by package name, checks them, and keeps them by content."""

from pytest_deploybench.sources.store import fetch, verify

__all__ = ["fetch", "verify"]
