"""GitHub over PyGithub: the only package that knows it."""

from bot.forge.github.app import (
    PUBLIC_API,
    AppInfo,
    GitHubApp,
    HookDelivery,
    Installation,
    checked_url,
    load_key,
)
from bot.forge.github.http import Exchange, Observe
from bot.forge.github.reader import GitHubForge
from bot.forge.github.writer import GitHubWriter

__all__ = [
    "PUBLIC_API",
    "AppInfo",
    "Exchange",
    "GitHubApp",
    "GitHubForge",
    "GitHubWriter",
    "HookDelivery",
    "Installation",
    "Observe",
    "checked_url",
    "load_key",
]
