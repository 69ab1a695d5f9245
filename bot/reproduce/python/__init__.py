"""Python: pytest functions and classes, unittest and Django test cases."""

from bot.reproduce.python.language import Python

__all__ = ["Python"]
