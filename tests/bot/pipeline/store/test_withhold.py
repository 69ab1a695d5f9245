"""The operator's secrets are in no table, in whatever form they come."""

from __future__ import annotations

import json

from bot.pipeline.store import Database, withhold
from bot.pipeline.store.tables import COUNTERS


def test_nothing_withheld_is_written_in_any_form(database: Database) -> None:
    withhold(database, lambda: ('two "lines"\nof a key', "short"))
    texts = ('a two "lines"\nof a key b', json.dumps({"k": 'two "lines"\nof a key'}), "a short word")
    with database.write() as connection:
        for number, text in enumerate(texts):
            connection.execute(
                COUNTERS.insert(), {"name": text, "labels": str(number), "value": 1, "updated_at": 1}
            )
    with database.read() as connection:
        labels = connection.execute(COUNTERS.select().order_by(COUNTERS.c.labels)).scalars().all()
    assert labels == ["a REDACTED b", '{"k": "REDACTED"}', "a short word"]
