"""The database of a ledger: connections, tables, queries, and the commands that write.

Works on SQLite and PostgreSQL. Whatever is acknowledged has been flushed to disk.
"""
