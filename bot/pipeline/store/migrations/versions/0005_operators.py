"""Where the app is installed, what operators paused, and who is logged in."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "installations",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("suspended", sa.Boolean(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False),
    )
    op.create_table(
        "pauses",
        sa.Column("repository", sa.Text(), primary_key=True),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("since_at", sa.Float(), nullable=False),
    )
    op.add_column("sessions", sa.Column("login", sa.Text(), nullable=False, server_default=""))
