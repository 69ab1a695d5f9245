"""What a provider read from its prompt cache is priced apart, so it is counted apart."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_INDEX = ["created_at", "repository", "model", "calls", "input_tokens", "output_tokens", "cost_usd"]


def upgrade() -> None:
    op.add_column("model_calls", sa.Column("cached_tokens", sa.BigInteger(), nullable=False, server_default="0"))
    op.drop_index("model_calls_time", "model_calls")
    op.create_index("model_calls_time", "model_calls", [*_INDEX, "cached_tokens"])
