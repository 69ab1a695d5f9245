"""How a defect is classified: CR-Bench, 4.2, Table 2 (causes after Beizer, impacts after ISO/IEC 25010)."""

from __future__ import annotations

import re
from enum import StrEnum


def _plain(text: str) -> str:
    return re.sub(r"[^a-z]+", "_", text.lower()).strip("_")


class Category(StrEnum):
    """The root cause of a defect."""

    STRUCTURAL = "structural"
    IIS = "iis"
    RFF = "rff"
    DATA = "data"
    CONCURRENCY = "concurrency"
    MEMORY = "memory"
    SECURITY = "security"
    CODING = "coding"

    @property
    def description(self) -> str:
        """What belongs here, in one line, for people and models."""
        return _CATEGORIES[self]

    @classmethod
    def _missing_(cls, value: object) -> Category | None:
        """Accept the long names that models answer with, such as ``Interface, Integration, and System Bugs``."""
        plain = re.sub(r"(_related)?_(bugs?|issues?|defects?|errors?)$", "", _plain(str(value)))
        short = next((word for word in plain.split("_") if word in ("iis", "rff")), plain)
        return _CATEGORY_NAMES.get(short)


class Impact(StrEnum):
    """What the defect compromises when it strikes."""

    FUNCTIONAL_SUITABILITY = "functional_suitability"
    PERFORMANCE_EFFICIENCY = "performance_efficiency"
    COMPATIBILITY = "compatibility"
    USABILITY = "usability"
    RELIABILITY = "reliability"
    SECURITY = "security"
    MAINTAINABILITY = "maintainability"
    PORTABILITY = "portability"

    @property
    def description(self) -> str:
        """What belongs here, in one line, for people and models."""
        return _IMPACTS[self]

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
        return ("low", "medium", "high").index(self.value)

    @classmethod
    def _missing_(cls, value: object) -> Severity | None:
        plain = _plain(str(value))
        if plain == "critical":
            return cls.HIGH
        return next((severity for severity in cls if severity.value == plain), None)


#: Where two fit, the first does: what is rarer and weighs more comes before what nearly everything is.
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

_CATEGORIES = {
    Category.STRUCTURAL: "control flow, logic, arithmetic, initialisation, data flow inside a unit",
    Category.IIS: "interface, integration and system: how components, files or protocols are used together",
    Category.RFF: "requirements, features and functionality: does not, or only in part, what was asked for",
    Category.DATA: "definition, format, initial value or use of data; constants, configuration, types",
    Category.CONCURRENCY: "races, lost atomicity, deadlocks, wrong order between threads, processes or tasks",
    Category.MEMORY: "memory and other resources: leaks, overflows, use before initialisation or after release",
    Category.SECURITY: "lets somebody do or read what they must not",
    Category.CODING: "slips of the pen: wrong name, wrong operator, wrong argument, misleading documentation",
}

_CATEGORY_NAMES = {
    **{category.value: category for category in Category},
    "interface_integration_and_system": Category.IIS,
    "interface_integration_system": Category.IIS,
    "requirements_features_and_functionality": Category.RFF,
    "requirements_features_functionality": Category.RFF,
    "concurrent": Category.CONCURRENCY,
    "logic": Category.STRUCTURAL,
}

_IMPACTS = {
    Impact.FUNCTIONAL_SUITABILITY: "wrong, missing or unfitting behaviour",
    Impact.PERFORMANCE_EFFICIENCY: "slow, or wasteful of time, memory or other resources",
    Impact.COMPATIBILITY: "breaks other software, versions, protocols or callers",
    Impact.USABILITY: "misleads or hinders the people who use it",
    Impact.RELIABILITY: "crashes, hangs, corrupts state or does not recover",
    Impact.SECURITY: "exposes data or access",
    Impact.MAINTAINABILITY: "harder to read, change or extend; breaks nothing today",
    Impact.PORTABILITY: "fails on another system, platform or environment",
}
