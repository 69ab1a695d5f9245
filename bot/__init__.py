"""Bouncer: a self-hosted GitHub App that knows when not to act."""

__version__ = "0.3.0"
