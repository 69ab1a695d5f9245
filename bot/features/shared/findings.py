"""Defects as a model reports them, and findings: defects whose quote is in the diff.

How a defect is classified: CR-Bench, 4.2, Table 2 (causes after Beizer, impacts after ISO/IEC 25010).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from bot.core.frozen import Frozen, Lenient
from bot.core.subjects import Side
from bot.features.shared.labels import Chance


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
    """The extent of the impact. ``critical``, as in the paper's tagging prompt (listing 3), is read as high."""

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
        if plain == "critical":
            return cls.HIGH
        return next((severity for severity in cls if severity.value == plain), None)


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


#: Reasons why a reported defect is no finding.
DropReason = Literal[
    "path_not_in_diff", "quote_missing", "quote_not_in_diff", "symbol_not_in_diff", "comment_missing"
]


def _grade(value: Any) -> Any:
    """Return a grade as it is spelled here; answers of version 0.2 say True or False."""
    if isinstance(value, bool):
        return "knows_outcome" if value else "no"
    return value.strip().lower().replace(" ", "_").replace("_the_", "_") if isinstance(value, str) else value


#: If a model knows this very issue, change or defect from elsewhere, or even what became of it.
Grade = Annotated[Literal["no", "vaguely", "knows_outcome"], BeforeValidator(_grade)]


def most_familiar(grades: Iterable[Grade | None]) -> Grade | None:
    """Return the highest of several grades."""
    order: tuple[Grade | None, ...] = (None, "no", "vaguely", "knows_outcome")
    return max(grades, key=order.index, default=None)


class FurtherPlace(Lenient):
    """Another place with the same cause, as the model reports it."""

    path: str
    quote: str
    line: int | None = None


class Edit(Lenient):
    """An edit of a file as it is after the change."""

    path: str
    old: str
    new: str


class Reported(Lenient):
    """A defect as the model reports it. Nothing in it is trusted until its quote is matched in the diff.

    The question explains the fields.
    """

    path: str
    quote: str
    line: int | None = None
    symbol: str = ""
    comment: str
    places: tuple[FurtherPlace, ...] = ()
    category: Category
    impact: Impact
    severity: Severity
    confidence: Chance = None
    depends_on: tuple[str, ...] = ()
    suggestion: str | None = None
    repair: tuple[Edit, ...] = ()
    recognised: SkipJsonSchema[Grade | None] = Field(None, description="only asked in evaluation")


class ReviewReply(Lenient):
    """The model's review. The reasoning comes before the findings."""

    incomplete_lists = ("findings",)

    reasoning: str
    findings: tuple[Reported, ...]


ProofOutcome = Literal["proven", "passes on both", "not proven", "not run"]


class Proof(Frozen):
    """The outcome of tests that were drafted for a finding, on the head and on the merge base."""

    outcome: ProofOutcome
    why: str = Field("", description="one sentence, if it is not proven")
    path: str = ""
    command: str = ""
    test: str = Field("", description="the code of the test")
    output: str = Field("", description="its output on the head")


#: Behind the number of a line that the change removes, which counts in the old file.
REMOVED = " (removed)"


def place_name(path: str, number: int | None, side: Side) -> str:
    """Return ``a.py:10``, or ``a.py:10 (removed)`` for a removed line."""
    return f"{path}:{number}{REMOVED if side == 'LEFT' else ''}"


class Finding(Frozen):
    """A defect whose path, quote and symbol are in the diff."""

    path: str
    line: int | None = Field(description="last line it is about; None = no line of the diff can carry it")
    start_line: int | None = Field(None, description="first line, if it is about several")
    side: Side = "RIGHT"
    code: tuple[str, ...] = Field(description="the lines it is about, white space squeezed")
    symbol: str = Field("", description="name of the function, variable or key at fault; empty if unknown")
    fingerprint: str = Field(description="see ``fingerprint``: stays when lines shift")
    comment: str
    category: Category
    impact: Impact
    severity: Severity
    suggestion: str | None = None
    confidence: int | None = Field(
        None, description="percent, by the look, then by the second question; None: not given"
    )
    proof: Proof | None = Field(None, description="None if it was not tried")
    looks: int = Field(1, ge=1, description="independent looks that reported it")
    models: tuple[str, ...] = Field((), description="the models of these looks")
    repair: tuple[Edit, ...] = Field((), description="its smallest repair; empty if none was given")
    recognised: Grade | None = Field(None, description="if its model knew it from elsewhere; None: not asked")
    places: tuple[str, ...] = Field((), description="further places of the same cause, see ``place_name``")
    depends_on: tuple[str, ...] = Field(
        (), description="code that was not shown and that decides whether it holds"
    )

    @property
    def own_places(self) -> tuple[str, ...]:
        """The names of the lines that it is about."""
        if self.line is None:
            return ()
        numbers = range(self.start_line or self.line, self.line + 1)
        return tuple(place_name(self.path, number, self.side) for number in numbers)

    @property
    def proven(self) -> bool:
        """True if a test passes before the change and fails after it."""
        return self.proof is not None and self.proof.outcome == "proven"


class Dropped(Frozen):
    """A reported defect whose quote is not in the diff."""

    reported: Reported
    reason: DropReason


def fingerprint(path: str, code: Sequence[str], category: Category, around: Sequence[str] = ()) -> str:
    """Return 16 hex digits over path, code (white space squeezed, blank lines left out) and defect class.

    The lines ``around`` count too if the code has no distinctive line, so that it may stand at several places.
    """
    parts = [path, category.value, *filter(None, code)]
    if around and not _distinctive(code):
        parts += ["", *around]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def plain_fingerprint(finding: Finding) -> str:
    """Return the fingerprint without the lines around, which findings of version 0.2 have at every place."""
    return fingerprint(finding.path, finding.code, finding.category)


def same_defect(left: Finding, right: Finding) -> bool:
    """Return True for equal fingerprints, or for overlapping code with the same symbol or class of defect.

    Words do not count, and two reviews may quote one line or two. In different files, as when code moves, symbol
    and class have to be the same.
    """
    if left.fingerprint in (right.fingerprint, plain_fingerprint(right)):
        return True
    if right.fingerprint == plain_fingerprint(left):
        return True
    same_symbol = left.symbol == right.symbol and bool(left.symbol)
    if same_symbol and plain_fingerprint(left) == plain_fingerprint(right):
        return True
    if not _distinctive(left.code) & _distinctive(right.code):
        return False
    same_class = left.category == right.category
    return (same_symbol or same_class) if left.path == right.path else (same_symbol and same_class)


def apart(left: Finding, right: Finding) -> bool:
    """Return True if two findings of one review are on different lines of one side of a file."""
    if (left.path, left.side) != (right.path, right.side) or not left.line or not right.line:
        return False
    return not set(left.own_places) & set(right.own_places)


def same_subject(left: Finding, right: Finding) -> bool:
    """Return True for the same symbol of a file and the same class of defect, whatever the code.

    A finding that people have dealt with does not return at the next line, or at the line that replaced its own.
    """
    same_symbol = left.symbol == right.symbol and len(left.symbol) > _SHORT_SYMBOL
    return same_symbol and (left.path, left.category) == (right.path, right.category)


def same_cause(left: Finding, right: Finding) -> bool:
    """Return True if two findings report one cause at two places.

    One names the other's line among its places; or they name the same further place, or have the same code (a
    common line between the same lines), and the class of defect is the same. Two findings on the same lines are
    duplicates, see ``same_defect``.
    """
    if set(left.own_places) & set(right.own_places):
        return False
    if set(left.places) & set(right.own_places) or set(right.places) & set(left.own_places):
        return True
    same_code = left.code == right.code and bool(_distinctive(left.code))
    same_code = same_code or left.fingerprint == right.fingerprint
    shared_place = bool(set(left.places) & set(right.places))
    return (same_code or shared_place) and left.category == right.category


#: Characters of a symbol that any function may use, such as ``i`` or ``fd``.
_SHORT_SYMBOL = 2
#: Words that any function may use alone, and letters and digits that a distinctive line has beside them.
_COMMON = re.compile(r"\b(?:return|break|continue|else|pass|None|null|nil|undefined|[Tt]rue|[Ff]alse|self|this)\b")
_DISTINCTIVE = 8


def _distinctive(code: Sequence[str]) -> frozenset[str]:
    """Return the lines that are not common ones such as ``}``, ``else:`` or ``return None``."""
    return frozenset(line for line in code if sum(map(str.isalnum, _COMMON.sub("", line))) >= _DISTINCTIVE)
