"""What stands between an operator and a working Bouncer: one finding a line, with its remedy."""

from bot.doctor.finding import Finding
from bot.doctor.rounds import AREAS, examine

__all__ = ["AREAS", "Finding", "examine"]
