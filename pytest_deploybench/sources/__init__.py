"""Fetches pinned sources by package name, checks them, and keeps them by content."""

from pytest_deploybench.sources.store import fetch, find, locate, place_of, verify

__all__ = ["fetch", "find", "locate", "place_of", "verify"]
