"""Ten pairs of issues about the same thing, written for the tests."""

from __future__ import annotations

#: Title and text of an earlier issue, and the title of a later one, in other words.
PAIRS = (
    (
        "Mean of an empty list raises",
        "`mean([])` crashes with ZeroDivisionError.",
        "Averaging nothing: mean([]) crash",
    ),
    ("CSV with BOM", "The first column is called \\ufeffname.", "First column of a CSV has \\ufeff in its name"),
    ("Colours ignored", "The palette option of plot has no effect.", "plot does not use the palette I pass"),
    ("Slow import", "Importing the package takes four seconds.", "import takes seconds since 4.2"),
    ("Windows paths", "Backslashes in paths are not escaped in the report.", "report shows wrong path on Windows"),
    ("Timezone lost", "parse_date drops the timezone offset.", "offset missing after parse_date"),
    ("Cache grows", "Memory of the cache is never freed.", "memory leak in cache"),
    ("Config not found", "bouncer.toml in the home folder is not read.", "home folder bouncer.toml has no effect"),
    ("Retry loops", "HTTP 429 is retried without waiting.", "retries at once after 429"),
    ("Unicode names", "Usernames with umlauts cannot log in.", "cannot log in: umlauts in my username"),
)
