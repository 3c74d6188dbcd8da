"""Times in UTC, as entries have them; calendar months, as numbers and as text such as 2026-03."""

from __future__ import annotations

from datetime import UTC, datetime


def written_time(time: datetime) -> str:
    """A time in UTC, as entries have it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def month_of(time: datetime) -> int:
    """The calendar month in UTC, as months since year 0."""
    there = time.astimezone(UTC)
    return 12 * there.year + there.month - 1


def month_name(month: int) -> str:
    return f"{month // 12:04d}-{month % 12 + 1:02d}"


def month_number(name: str) -> int:
    year, month = name.split("-")
    return 12 * int(year) + int(month) - 1
