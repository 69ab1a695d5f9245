"""The figures that the paper prints, quoted beside ours: Tables 2 to 5 (%BRT and baseline consistency rate)."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One setting of the paper; shares from 0 to 1."""

    layer: str
    benchmark: str
    model: str
    setting: str
    brt: float
    consistency: float | None = None


#: What reports are translated into, chosen because it needs no other script (section 3.2).
LANGUAGE = "Romanized Urdu"

ROWS: tuple[Row, ...] = (
    Row("Remember", "Defects4J", "StarCoder", "as reported", 0.241),
    Row("Remember", "Defects4J", "GPT-4o", "as reported", 0.365),
    Row("Remember", "GHRB", "StarCoder", "as reported", 0.161),
    Row("Remember", "GHRB", "GPT-4o", "as reported", 0.323),
    Row("Understand", "Defects4J", "StarCoder", "rephrased", 0.211, 0.709),
    Row("Understand", "Defects4J", "StarCoder", "translated", 0.206, 0.684),
    Row("Understand", "Defects4J", "GPT-4o", "rephrased", 0.355, 0.838),
    Row("Understand", "Defects4J", "GPT-4o", "translated", 0.372, 0.878),
    Row("Understand", "GHRB", "GPT-4o", "rephrased", 0.323, 0.900),
    Row("Understand", "GHRB", "GPT-4o", "translated", 0.419, 1.000),
    Row("Apply", "Defects4J", "StarCoder", "hash", 0.069, 0.240),
    Row("Apply", "Defects4J", "StarCoder", "meaningful", 0.107, 0.383),
    Row("Apply", "Defects4J", "GPT-4o", "hash", 0.224, 0.527),
    Row("Apply", "Defects4J", "GPT-4o", "meaningful", 0.217, 0.510),
    Row("Apply", "Defects4J", "GPT-4o", "meaningful, rephrased", 0.198, 0.473),
    Row("Apply", "Defects4J", "GPT-4o", "meaningful, translated", 0.197, 0.470),
    Row("Analyze", "Defects4J", "StarCoder", "meaningful, open book", 0.349),
    Row("Analyze", "Defects4J", "GPT-4o", "meaningful, open book", 0.256),
    Row("Analyze", "Defects4J", "GPT-4o", "rephrased, open book", 0.453),
    Row("Analyze", "GHRB", "GPT-4o", "meaningful, open book", 0.129),
)
