"""``python -m bot`` is ``bouncer``."""

from bot.cli import main

main()
