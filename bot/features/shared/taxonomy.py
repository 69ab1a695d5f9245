"""How a defect is classified: CR-Bench, 4.2, Table 2 (causes after Beizer, impacts after ISO/IEC 25010)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Self


def _plain(text: str) -> str:
    return re.sub(r"[^a-z]+", "_", text.lower()).strip("_")


class _Described(StrEnum):
    """A word with a ``description`` in one line, for people and models."""

    description: str

    def __new__(cls, word: str, description: str) -> Self:
        self = str.__new__(cls, word)
        self._value_ = word
        self.description = description
        return self


class Category(_Described):
    """The root cause of a defect."""

    STRUCTURAL = "structural", "control flow, logic, arithmetic, initialisation, data flow inside a unit"
    IIS = "iis", "how components, interfaces, files or protocols work together"
    RFF = "rff", "does not, or only in part, what was required"
    DATA = "data", "definition, format, initial value or use of data; constants, settings, types"
    CONCURRENCY = "concurrency", "races, lost atomicity, deadlocks, wrong order of threads or tasks"
    MEMORY = "memory", "leaks, overflows, use before initialisation or after release, of any resource"
    SECURITY = "security", "lets somebody do or read what they must not"
    CODING = "coding", "slips: wrong name, operator or argument, misleading documentation"

    @classmethod
    def _missing_(cls, value: object) -> Category | None:
        """Accept the long names that models answer with, such as ``Interface, Integration, and System Bugs``."""
        plain = re.sub(r"(_related)?_(bugs?|issues?|defects?|errors?)$", "", _plain(str(value)))
        short = next((word for word in plain.split("_") if word in ("iis", "rff")), plain)
        return _CATEGORY_NAMES.get(short)


class Impact(_Described):
    """The quality that a defect compromises."""

    FUNCTIONAL_SUITABILITY = "functional_suitability", "wrong or missing behaviour"
    PERFORMANCE_EFFICIENCY = "performance_efficiency", "wastes time or resources"
    COMPATIBILITY = "compatibility", "breaks other software, versions or callers"
    USABILITY = "usability", "misleads or hinders users"
    RELIABILITY = "reliability", "crashes, hangs or corrupts state"
    SECURITY = "security", "exposes data or access"
    MAINTAINABILITY = "maintainability", "harder to change; breaks nothing today"
    PORTABILITY = "portability", "fails in another environment"

    @classmethod
    def _missing_(cls, value: object) -> Impact | None:
        plain = _plain(str(value))
        return next((impact for impact in cls if plain and impact.value.startswith(plain)), None)


class Severity(StrEnum):
    """The extent of the impact; ``critical``, which only the paper's tagging prompt (listing 3) knows, is high."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """0 for low, 2 for high."""
        return list(Severity).index(self)

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        plain = _plain(str(value))
        return next(
            (severity for severity in cls if severity.value == plain), cls.HIGH if plain == "critical" else None
        )


#: If two fit, the first counts: rare and severe ones come before common ones.
CATEGORIES = (
    Category.SECURITY,
    Category.CONCURRENCY,
    Category.MEMORY,
    Category.IIS,
    Category.DATA,
    Category.RFF,
    Category.STRUCTURAL,
    Category.CODING,
)
IMPACTS = (
    Impact.SECURITY,
    Impact.RELIABILITY,
    Impact.FUNCTIONAL_SUITABILITY,
    Impact.PERFORMANCE_EFFICIENCY,
    Impact.COMPATIBILITY,
    Impact.PORTABILITY,
    Impact.USABILITY,
    Impact.MAINTAINABILITY,
)

_CATEGORY_NAMES = {
    **{category.value: category for category in Category},
    "interface_integration_and_system": Category.IIS,
    "interface_integration_system": Category.IIS,
    "requirements_features_and_functionality": Category.RFF,
    "requirements_features_functionality": Category.RFF,
    "concurrent": Category.CONCURRENCY,
    "logic": Category.STRUCTURAL,
}
