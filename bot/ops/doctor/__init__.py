"""What stands between an operator and a working Bouncer: one finding a line, with its remedy."""

from bot.ops.doctor.finding import Finding
from bot.ops.doctor.rounds import AREAS, examine

__all__ = ["AREAS", "Finding", "examine"]
