"""Analyze: the components of bug reports (Table 1), and which of them go with success (section 3.4). Pure.

Components come from annotations by hand, or from rules: an approximation, and called that wherever it is shown.
Whether a patched method is named can be told only where the patched methods are known. Ten forests, each on a
random 80 % of the reports; how much a component matters is how far the AUC on the other 20 % falls when the
component is shuffled. The ten values of each are ranked by Scott-Knott ESD: Scott and Knott, A Cluster Analysis
Method for Grouping Means in the Analysis of Variance (1974); Tantithamthavorn et al., An Empirical Comparison of
Model Validation Techniques (2017), which first brings the measurements nearer to a normal distribution by
ln(x + 1) and joins neighbouring groups whose difference is negligible.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from pydantic import Field

from bot.core.frozen import Frozen

Component = Literal[
    "natural language bug description",
    "buggy method or API name",
    "natural language bug fix",
    "bug fix code",
    "developer's intent",
    "test code",
    "expected or actual output",
    "stack trace",
]
COMPONENTS: tuple[Component, ...] = get_args(Component)

#: Share of the authors' annotated Defects4J reports that hold each component (Table 1).
PUBLISHED: dict[Component, float] = {
    "natural language bug description": 0.9275,
    "buggy method or API name": 0.6375,
    "natural language bug fix": 0.0393,
    "bug fix code": 0.0515,
    "developer's intent": 0.0651,
    "test code": 0.4692,
    "expected or actual output": 0.2604,
    "stack trace": 0.1093,
}

_FENCE = re.compile(r"^(```|~~~)[^\n]*\n(.*?)(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_TRACE = re.compile(
    r"""^[^\S\n]*at\ [\w.$<>]+\([^)\n]*\)
    | Traceback\ \(most\ recent\ call\ last\)
    | ^[^\S\n]*File\ "[^"\n]+",\ line\ \d+""",
    re.MULTILINE | re.VERBOSE,
)
_DIFF = re.compile(
    r"""^(?: diff\ --git\  | Index:\  | @@\ -\d | ---\ \S+\s*\n\+\+\+\  )
    | ^[+-]\s*\w.*\n[+-]\s*\w""",
    re.MULTILINE | re.VERBOSE,
)
_CODE_LINE = re.compile(
    r"""^[^\S\n]* (?: >>>\  | import\  | from\ \w+\ import\  | @\w+ | assert )
    | ^[^\S\n]* (?: def | class | public | private | new )(?:\ )
    | [;{}]\s*$
    | ^[^\S\n]*\w+\ ?=\ ?\w+[.(]""",
    re.MULTILINE | re.VERBOSE,
)
_FIX = re.compile(
    r"""\b (?:
      (?: sh | c | w )ould\ (?:be\ )?(?:fixed|changed|replaced|solved)
    | (?: the | a | possible | proposed | suggested | simple | easy )\ (?:fix|solution)
    | fix(?:ing)?\ (?:it|this)\ (?:by|would|is)
    | (?: suggest | propose )\w*\b .{0,40} \b(?:chang|replac|add|us)
    | replac(?:e|ing)\  .{1,60} \ (?:with|by)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_INTENT = re.compile(
    r"""\b (?:
      I(?: 'm | \ am | \ was )?\ (?: trying | try | want | wanted | need | needed | attempt\w* | using )\b
    | we\ (?: are\ trying | want | need | use )\b
    | (?: steps\ | how\  )?to\ reproduce
    | my\ use\ ?case
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_OUTPUT = re.compile(
    r"""\b(?:expected|actual)\b .{0,60} (?: [:=<\["'`] | \bis\b | \bwas\b )
    | \bbut\ (?: was | got | it\ (?:returns|prints|gives) )\b
    | \b(?: returns? | prints? | outputs? | gives? | yields? | produces? | results?\ in )\ [`"'\[<(\d]
    | \binstead\ of\ [`"'\[<(\d]
    | \boutput(?:\ is)?:""",
    re.IGNORECASE | re.VERBOSE,
)
#: Words of prose from which a text explains something.
_PROSE = 12


class Presence(Frozen):
    """Which components a report holds; a component that cannot be told is missing."""

    bug_id: str
    components: dict[Component, bool]


def presence(bug_id: str, report: str, patched: Iterable[str] | None = None) -> Presence:
    """The components of a report in Markdown. ``patched``: names of the patched methods, None if unknown."""
    blocks = [body for _, body in _FENCE.findall(report)]
    prose = _FENCE.sub("\n", report)
    without_trace = _TRACE.sub("", prose)
    components: dict[Component, bool] = {
        "natural language bug description": len(re.findall(r"[A-Za-z]{2,}", without_trace)) >= _PROSE,
        "natural language bug fix": bool(_FIX.search(prose)),
        "bug fix code": any(_DIFF.search(block) for block in blocks) or bool(_DIFF.search(prose)),
        "developer's intent": bool(_INTENT.search(prose)),
        # Two lines that look like a program's, in one place, which is neither a trace nor a diff.
        "test code": any(
            not _DIFF.search(text) and len(_CODE_LINE.findall(_TRACE.sub("", text))) >= 2
            for text in (*blocks, prose)
        ),
        "expected or actual output": bool(_OUTPUT.search(report)),
        "stack trace": bool(_TRACE.search(report)),
    }
    if patched is not None:
        names = [name for name in patched if len(name) > 1]
        components["buggy method or API name"] = any(
            re.search(rf"(?<!\w){re.escape(n)}(?!\w)", report) for n in names
        )
    return Presence(bug_id=bug_id, components=components)


def shares(reports: Sequence[Presence]) -> dict[Component, float]:
    """The share of reports that hold each component; one that no report tells is left out."""
    values_of = {c: [report.components[c] for report in reports if c in report.components] for c in COMPONENTS}
    return {component: sum(values) / len(values) for component, values in values_of.items() if values}


FORESTS = 10
TREES = 100
HELD_OUT = 0.2
#: Mean AUC from which on the forests tell enough to rank components; below it, importances are noise.
TELLING = 0.6


class Importance(Frozen):
    """How much one component says about success."""

    component: Component
    rank: int | None = Field(description="by Scott-Knott ESD; 1 matters most; None if the forests tell nothing")
    mean: float = Field(description="mean fall of the AUC when the component is shuffled")
    values: tuple[float, ...] = Field(description="one a forest")


class Analysis(Frozen):
    """The result of the forests."""

    reports: int
    successes: int
    auc: float = Field(description="mean AUC on the held-out fifths: 0.5 = the components say nothing")
    importances: tuple[Importance, ...] = Field(description="most important first")
    presence: dict[Component, float]
    success_with: dict[Component, float | None] = Field(description="success rate of reports that hold it")
    success_without: dict[Component, float | None] = Field(description="of those that do not")

    def as_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json"), "published_presence": dict(PUBLISHED)}


def analyze(reports: Sequence[Presence], success: Mapping[str, bool], seed: int = 0) -> Analysis:
    """Train the forests and rank the components.

    Only components known of every report take part. Raises ValueError if fewer than 50 reports have a known
    outcome, or all have the same one.
    """
    usable = [report for report in reports if report.bug_id in success]
    columns = [c for c in COMPONENTS if all(c in report.components for report in usable)]
    labels = np.array([success[report.bug_id] for report in usable], dtype=int)
    if len(usable) < 50 or len(set(labels.tolist())) < 2:
        raise ValueError("50 reports with both outcomes are needed")
    features = np.array([[report.components[c] for c in columns] for report in usable], dtype=int)
    aucs, falls = zip(*(_forest(features, labels, seed + number) for number in range(FORESTS)), strict=True)
    values: dict[str, list[float]] = {c: [float(fall[place]) for fall in falls] for place, c in enumerate(columns)}
    ranks = scott_knott_esd(values) if np.mean(aucs) >= TELLING else {}
    importances = [
        Importance(component=c, rank=ranks.get(c), mean=float(np.mean(values[c])), values=tuple(values[c]))
        for c in columns
    ]
    if ranks:
        importances.sort(key=lambda importance: (importance.rank, -importance.mean))
    return Analysis(
        reports=len(usable),
        successes=int(labels.sum()),
        auc=float(np.mean(aucs)),
        importances=tuple(importances),
        presence=shares(usable),
        success_with={c: _rate(labels[features[:, place] == 1]) for place, c in enumerate(columns)},
        success_without={c: _rate(labels[features[:, place] == 0]) for place, c in enumerate(columns)},
    )


def _forest(features: Any, labels: Any, seed: int) -> tuple[float, Any]:
    """Return the AUC on the reports held out, and its mean fall for each component that is shuffled."""
    # Imported here because it takes two seconds, and --help needs none of it.
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.inspection import permutation_importance
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import train_test_split

    train_x, test_x, train_y, test_y = train_test_split(
        features, labels, test_size=HELD_OUT, random_state=seed, stratify=labels
    )
    forest = RandomForestClassifier(n_estimators=TREES, random_state=seed, min_samples_leaf=2)
    forest.fit(train_x, train_y)
    falls = permutation_importance(forest, test_x, test_y, scoring="roc_auc", n_repeats=5, random_state=seed)
    return float(roc_auc_score(test_y, forest.predict_proba(test_x)[:, 1])), falls.importances_mean


def _rate(labels: Any) -> float | None:
    return float(labels.mean()) if len(labels) else None


#: Level of the likelihood-ratio test.
ALPHA = 0.05
#: Cohen's d below which a difference is negligible (Cohen, 1988; the ESD test's own choice).
NEGLIGIBLE = 0.2


def scott_knott_esd(samples: Mapping[str, Sequence[float]]) -> dict[str, int]:
    """Rank of each treatment: 1 holds the greatest means; treatments of one rank do not differ noticeably.

    ``samples``: for each treatment its measurements, equally many each, all above -1: ``ln(x + 1)`` of them is
    taken, as the source does, which changes little where they are small. Then the means are split where that
    explains most variance, again and again, as long as a likelihood-ratio test is significant; then neighbouring
    groups whose difference is negligible are joined.
    """
    samples = {name: [math.log1p(value) for value in values] for name, values in samples.items()}
    groups = scott_knott(samples)
    joined: list[list[str]] = []
    for group in groups:
        pooled = [value for name in group for value in samples[name]]
        before = [value for name in joined[-1] for value in samples[name]] if joined else []
        if joined and abs(_cohens_d(before, pooled)) < NEGLIGIBLE:
            joined[-1].extend(group)
        else:
            joined.append(list(group))
    return {name: rank for rank, group in enumerate(joined, 1) for name in group}


def scott_knott(samples: Mapping[str, Sequence[float]]) -> list[list[str]]:
    """Groups of treatments, greatest means first, by the Scott-Knott test at the level of ``ALPHA``."""
    means = {name: float(np.mean(values)) for name, values in samples.items()}
    order = sorted(samples, key=lambda name: (-means[name], name))
    replicates = len(samples[order[0]])
    freedom = len(samples) * (replicates - 1)
    error = sum(float(np.var(values, ddof=1)) for values in samples.values()) / len(samples)
    return _split(order, means, error / replicates, freedom)


def _split(order: list[str], means: Mapping[str, float], variance_of_mean: float, freedom: int) -> list[list[str]]:
    if len(order) < 2:
        return [order]
    values = [means[name] for name in order]
    k, total = len(values), sum(values)

    def between_groups(at: int) -> float:
        """Sum of squares between the first ``at`` values and the others."""
        left, right = sum(values[:at]), sum(values[at:])
        return left**2 / at + right**2 / (k - at) - total**2 / k

    at = max(range(1, k), key=between_groups)
    between = between_groups(at)
    spread = sum((value - total / k) ** 2 for value in values)
    sigma = (spread + freedom * variance_of_mean) / (k + freedom)
    if sigma <= 0:
        return [order]
    statistic = math.pi / (2 * (math.pi - 2)) * between / sigma
    # Imported here because it takes a second, and --help needs none of it.
    from scipy import stats

    if stats.chi2.sf(statistic, k / (math.pi - 2)) >= ALPHA:
        return [order]
    halves = (order[:at], order[at:])
    return [group for half in halves for group in _split(half, means, variance_of_mean, freedom)]


def _cohens_d(left: Sequence[float], right: Sequence[float]) -> float:
    n, m = len(left), len(right)
    pooled = ((n - 1) * np.var(left, ddof=1) + (m - 1) * np.var(right, ddof=1)) / (n + m - 2)
    difference = float(np.mean(left) - np.mean(right))
    if pooled == 0:
        return 0.0 if difference == 0 else math.inf
    return difference / math.sqrt(float(pooled))
