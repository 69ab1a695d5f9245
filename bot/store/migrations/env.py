"""What alembic runs: on the connection, and in the transaction, that ``migrate`` opened."""

from alembic import context

from bot.store.migrate import VERSION
from bot.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION.name,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
