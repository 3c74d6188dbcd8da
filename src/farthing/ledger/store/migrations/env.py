"""Alembic's entry: migrate over the connection, and inside the transaction, of the caller."""

from alembic import context

from farthing.ledger.store.tables import metadata, version

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=version.name,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
