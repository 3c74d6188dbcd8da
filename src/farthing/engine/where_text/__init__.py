"""Conditions as text in SQL or Python: read into filters and written from them.

The text itself never reaches an engine.
"""
