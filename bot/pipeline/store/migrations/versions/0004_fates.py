"""What became of judged subjects."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "fates",
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("bouncer", sa.Text(), nullable=False),
        sa.Column("good", sa.Boolean(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("p_bounce", sa.Integer()),
        sa.Column("bounced", sa.Boolean(), nullable=False),
        sa.Column("harm", sa.Integer()),
        sa.Column("settled_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("repository", "subject", "bouncer"),
    )
    op.create_index("fates_bouncer", "fates", ["repository", "bouncer", "settled_at"])
