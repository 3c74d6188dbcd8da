"""Words for people: counted nouns, and text without control characters."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal


def many(count: int, what: str) -> str:
    """A number and a noun, in the plural if need be."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


#: The separator of thousands.
THIN = "\u202f"


def plain(text: str) -> str:
    """Text without characters that control a terminal or reverse the direction of writing."""
    return "".join(c if c.isprintable() or c == THIN else "\ufffd" for c in text)


#: What a certificate is about, in `guess_words`.
ALL_SOLD = "everything that the tariff can ever sell"


def percent_up(chance: float) -> str:
    """A chance in per cent, never shown smaller than it is."""
    percent = (100 * Decimal(repr(chance))).quantize(Decimal("0.1"), rounding=ROUND_CEILING)
    return f"{percent.normalize():f} %"


def guess_words(right: float, unit: str, what: str) -> str:
    """What a bound on the chance of guessing right means."""
    return (
        f"Whoever guesses from {what} whether one {unit} is in the data, starting from even odds, "
        f"is right at most {percent_up(right)} of the time."
    )
