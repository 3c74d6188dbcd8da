"""Tariffs: price lists, the supremum over all ways to spend them, and their certificates.

Prices are proposed in `prices` and `ladder`; `verification` proves a certificate again.
"""
