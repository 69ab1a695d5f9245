"""A small GitHub on loopback: state, permissions, validation, webhooks and faults; used by tests and the demo."""

from bot.testing.github.faults import Fault
from bot.testing.github.simulation import SimulatedGitHub
from bot.testing.github.state import App, Installation, Repository

__all__ = ["App", "Fault", "Installation", "Repository", "SimulatedGitHub"]
