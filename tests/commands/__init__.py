"""Mirrors pytest_deploybench/commands."""
