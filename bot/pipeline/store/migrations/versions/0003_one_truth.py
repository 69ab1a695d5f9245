"""The engine alone holds the state of jobs; counts are kept as they grow; closed subjects are known.

Jobs that had not ended are made anew from their deliveries: what they had decided and been told is on record under
the same ids, so nothing is asked or written twice. Of a dead letter its delivery says what went wrong.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

#: Counts by name: how a row of which table adds to them.
_DECISIONS = """
    SELECT kind,
    CASE WHEN kind IN ('triage', 'verify', 'review', 'reproduce') THEN COALESCE(verdict, '') ELSE '' END,
    COALESCE(abstained, ''), COUNT(*) FROM decisions GROUP BY 1, 2, 3
"""
_CALLS = """
    SELECT model, COUNT(reply), COUNT(*) - COUNT(reply), SUM(input_tokens), SUM(output_tokens), SUM(seconds),
    SUM(COALESCE(cost_usd, 0)) FROM model_calls GROUP BY model
"""


#: What jobs there were says which subject a delivery was about, what went wrong with it, and whether it has ended.
_JOBS = (
    "UPDATE deliveries SET number ="
    " COALESCE((SELECT MAX(number) FROM jobs WHERE jobs.delivery = deliveries.id), 0)",
    "UPDATE deliveries SET problem = (SELECT MAX(task || ': ' || COALESCE(error, '')) FROM jobs"
    " WHERE jobs.delivery = deliveries.id AND state = 'dead')"
    " WHERE problem IS NULL AND id IN (SELECT delivery FROM jobs WHERE state = 'dead')",
    "UPDATE deliveries SET dispatched_at = NULL"
    " WHERE id IN (SELECT delivery FROM jobs WHERE state IN ('waiting', 'queued', 'running'))",
)


def upgrade() -> None:
    bind = op.get_bind()
    op.add_column("deliveries", sa.Column("number", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_index("deliveries_subject", "deliveries", ["repository", "number", "seq"])
    op.create_index("deliveries_received", "deliveries", ["received_at"])
    op.add_column("workers", sa.Column("executor", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "closed",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "number"),
    )
    for statement in _JOBS:
        bind.execute(sa.text(statement))
    op.drop_table("jobs")
    _carry_counts(bind)


def _carry_counts(bind: sa.Connection) -> None:
    counts: list[tuple[str, dict[str, str], float]] = []
    for kind, verdict, abstained, count in bind.execute(sa.text(_DECISIONS)):
        counts.append(("bouncer_decisions", {"kind": kind, "verdict": verdict, "abstained": abstained}, count))
    for kind, count in bind.execute(sa.text("SELECT type, COUNT(*) FROM postings GROUP BY type")):
        counts.append(("bouncer_postings", {"type": kind}, count))
    for model, answered, failed, sent, received, seconds, cost in bind.execute(sa.text(_CALLS)):
        counts += [
            ("bouncer_model_calls", {"model": model, "result": "answered"}, answered),
            ("bouncer_model_calls", {"model": model, "result": "failed"}, failed),
            ("bouncer_model_tokens", {"model": model, "direction": "in"}, sent),
            ("bouncer_model_tokens", {"model": model, "direction": "out"}, received),
            ("bouncer_model_seconds", {"model": model}, seconds),
            ("bouncer_model_cost_usd", {"model": model}, cost),
        ]
    for name, labels, value in counts:
        row = {"name": name, "labels": json.dumps(sorted(labels.items())), "value": float(value)}
        bind.execute(
            sa.text("INSERT INTO counters (name, labels, value, updated_at) VALUES (:name, :labels, :value, 0)"),
            row,
        )
