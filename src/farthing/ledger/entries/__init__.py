"""The entries of a book: a frozen class for each kind, with its fields and its effect.

`fact` reads and writes them, and applies them one after the other. The commands of the store
enforce the same rules when entries are written.
"""

from farthing.ledger.entries import analyst, owner

__all__ = ["analyst", "owner"]  # importing them registers their kinds
