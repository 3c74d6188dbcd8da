"""Tariffs: price lists, the supremum over all ways to spend them, and their certificates.

`prices` makes tariffs, `budget` and `tariff_recursion` prove them, `verification` proves a
certificate again.
"""
