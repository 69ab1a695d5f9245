"""A small GitHub on loopback: state, permissions, validation, webhooks and faults; used by tests and the demo."""

from bot.simgithub.simulation import SimulatedGitHub
from bot.simgithub.state import App, InstallationState, RepositoryState

__all__ = ["App", "InstallationState", "RepositoryState", "SimulatedGitHub"]
