"""Words for people: amounts of things, and text that commands nothing."""

from __future__ import annotations


def many(count: int, what: str) -> str:
    """A number of things."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


#: What stands between thousands.
THIN = "\u202f"


def plain(text: str) -> str:
    """Text without characters that command a terminal or turn the direction of writing."""
    return "".join(c if c.isprintable() or c == THIN else "\ufffd" for c in text)
