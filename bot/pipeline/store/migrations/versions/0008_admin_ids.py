"""The GitHub ids behind the names in BOUNCER_ADMINS, and models that their provider refuses."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "admin_ids",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("id", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "model_faults",
        sa.Column("model", sa.Text(), primary_key=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("since_at", sa.Float(), nullable=False),
    )
