"""SQL as a language for questions: a SELECT is read into queries, and queries are written as SQL.

The text itself never reaches an engine.
"""
