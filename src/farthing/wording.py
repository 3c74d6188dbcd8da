"""Words for people: counted nouns, and text without control characters."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """A number and a noun, in the plural if need be."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


#: The separator of thousands.
THIN = "\u202f"


def plain(text: str) -> str:
    """Text without characters that control a terminal or reverse the direction of writing."""
    return "".join(c if c.isprintable() or c == THIN else "\ufffd" for c in text)
