"""Means and variances from noisy totals, with intervals that hold whatever the totals really are.

The true totals lie, all together with the stated probability, in a box around the noisy ones, which
is made wider by what rounding to steps can have moved them. The interval of a number is the range
that it can have over the box: of a ratio at its corners, of a difference by the ends of its two
parts (Theorem 15 of docs/theory/mechanisms.md). Where there is no row there is no mean, and with
fewer than two no variance; then nothing is claimed.
"""

from __future__ import annotations

import math

from farthing.engine.kinds.totals import Measured, TotalsQuery
from farthing.mechanisms import Expectation, Release
from farthing.mechanisms.accuracy import Interval


def mean_from(query: TotalsQuery, release: Release, expectation: Expectation) -> Measured:
    """The mean, between the bounds of the question."""
    rows, middle, *_ = _ranges(release, expectation)
    count, total, *_ = _numbers(release)
    lower, upper = (bound / float(10**query.decimals) for bound in query.bounds)

    def value(ratio: float) -> float:
        """From half steps around the middle to the column, within its bounds."""
        return min(max(lower + query.unstepped((query.reach + ratio) / 2), lower), upper)

    low, high = _ratio(middle, rows)
    moved = 2 * query.rounding + _scaling(query)
    return value(total / max(count, 1.0)), (value(low - moved), value(high + moved))


def variance_from(query: TotalsQuery, release: Release, expectation: Expectation) -> Measured:
    """The variance as a sample has it: the sum of squares is divided by one less than rows."""
    deviation, (low, high) = standard_deviation_from(query, release, expectation)
    return deviation**2, (low**2, high**2)


def standard_deviation_from(
    query: TotalsQuery, release: Release, expectation: Expectation
) -> Measured:
    """The root of the variance. That values are rounded to steps moves it by at most one."""
    rows, middle, squares = _ranges(release, expectation)
    count, total, square = _numbers(release)
    reach, scaling = query.reach, _scaling(query)

    def spread(mean_square: float, mean: float, n: float) -> float:
        """In steps: d counts half steps, and its squares are kept as 2·d² − R²."""
        variance = ((mean_square + reach**2) / 2 - mean**2) / 4
        return math.sqrt(max(variance, 0.0) * max(n, 2.0) / (max(n, 2.0) - 1))

    low_mean, high_mean = _wider(_ratio(middle, rows), scaling)
    low_square, high_square = _wider(_ratio(squares, rows), scaling)
    least = 0.0 if low_mean <= 0 <= high_mean else min(abs(low_mean), abs(high_mean))
    low = spread(low_square, max(abs(low_mean), abs(high_mean)), rows[1])
    high = spread(high_square, least, rows[0])
    found = spread(square / max(count, 1.0), total / max(count, 1.0), count)
    widest = reach / math.sqrt(2)  # two rows at the two ends
    moved = 2 * query.rounding
    ends = max(min(low, widest) - moved, 0.0), min(high, widest) + moved
    return query.unstepped(min(found, widest)), (query.unstepped(ends[0]), query.unstepped(ends[1]))


def _scaling(query: TotalsQuery) -> float:
    """How far rounding what counts of units with more rows than count moves a mean of d, or of
    2·d²: by at most 1 for each of them, and each of them counts as τ rows."""
    return 1 / query.rows_of_a_unit


def _numbers(release: Release) -> tuple[float, ...]:
    assert release.counts is not None
    return tuple(map(float, release.counts))


def _ranges(release: Release, expectation: Expectation) -> tuple[Interval, ...]:
    """What each total may really be; there is at least one row."""
    assert expectation.totals is not None
    numbers = zip(_numbers(release), expectation.totals, strict=True)
    rows, *sums = ((number - width, number + width) for number, width in numbers)
    return (max(rows[0], 1.0), max(rows[1], 1.0)), *sums


def _ratio(total: Interval, rows: Interval) -> Interval:
    """The smallest and largest of total/rows."""
    corners = [t / n for t in total for n in rows]
    return min(corners), max(corners)


def _wider(interval: Interval, by: float) -> Interval:
    return interval[0] - by, interval[1] + by
