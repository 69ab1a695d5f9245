"""Every reader of text that strangers, repositories, models or data sets write.

One registry for the benchmark (``python -m tests.bench parsers``) and the property tests.
"""

from __future__ import annotations

from tests.parsers import benchmarks, grammars, live, reproduction
from tests.parsers.parser import Parser

PARSERS: tuple[Parser, ...] = (*live.PARSERS, *reproduction.PARSERS, *benchmarks.PARSERS, *grammars.PARSERS)
