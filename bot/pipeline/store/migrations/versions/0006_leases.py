"""A worker's place is its lease."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.alter_column("workers", "slot", new_column_name="lease")
