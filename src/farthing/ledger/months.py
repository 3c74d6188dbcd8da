"""Calendar months in UTC, as whole numbers and as text such as 2026-03."""

from __future__ import annotations

from datetime import UTC, datetime


def month_of(time: datetime) -> int:
    """The calendar month in UTC, as months since year 0."""
    there = time.astimezone(UTC)
    return 12 * there.year + there.month - 1


def month_name(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def month_number(name: str) -> int:
    year, month = name.split("-")
    return 12 * int(year) + int(month) - 1
