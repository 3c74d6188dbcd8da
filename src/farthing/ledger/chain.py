"""The hash chain: every entry's hash covers its own fact and, through the one before, all others.

    content_n = SHA-256(canonical JSON of the fact)
    hash_n    = SHA-256(hash_{n−1} content_n),    hash_0 = GENESIS

The database computes hash_n itself, in the statement that takes the dataset's lock, so that
two writers can never build on the same head (`link` in store/connection.py).
"""

from __future__ import annotations

from farthing.canonical import sha256

GENESIS = "0" * 64


def linked(previous: str, content: str) -> str:
    """The hash of an entry from the hash of the one before and the digest of its own fact."""
    return sha256(previous + content)


def start_of(conversation: str) -> str:
    """The hash before the first turn of a conversation, whose turns are linked in the same way."""
    return sha256(f"farthing conversation {conversation}")
