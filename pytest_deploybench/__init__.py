"""Measures whether an LLM agent can deploy the artifact of a published paper on a fresh Linux machine.

Importing this package does no work: every name lives in the room that the DESIGN of the house gives it.
"""
