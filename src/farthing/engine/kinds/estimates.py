"""Means and variances from noisy totals, with intervals that hold whatever the totals really are.

The true totals lie, all together with the stated probability, in a box around the noisy ones. The
interval of a number is the range that it can have over the box: of a ratio at its corners, of a
difference by the ends of its two parts. There is at least one row in the box, or the number has no
meaning and the interval is everything that it could be.
"""

from __future__ import annotations

import math

from farthing.engine.kinds.totals import Estimate, TotalsQuery
from farthing.mechanisms import Expectation, Release
from farthing.mechanisms.accuracy import Interval


def mean_of(query: TotalsQuery, release: Release, expectation: Expectation) -> Estimate:
    """The mean, between the bounds of the question."""
    rows, middle, *_ = _ranges(release, expectation)
    count, total, *_ = _numbers(release)
    lower, upper = query.bounds
    # a step holds values of up to step − 1 units above its lower end
    slack = query.step - 1

    def value(ratio: float) -> float:
        return lower + query.step * (query.reach + ratio) / 2

    low, high = (value(ratio) for ratio in _ratio(middle, rows))
    found = value(total / max(count, 1.0)) + slack / 2
    low, high = max(low, lower), min(high + slack, upper)
    unit = 10**query.decimals
    return min(max(found, lower), upper) / unit, (min(low, upper) / unit, max(high, lower) / unit)


def variance_of(query: TotalsQuery, release: Release, expectation: Expectation) -> Estimate:
    """The variance as a sample has it: the sum of squares is divided by one less than rows."""
    deviation, (low, high) = standard_deviation_of(query, release, expectation)
    return deviation**2, (low**2, high**2)


def standard_deviation_of(
    query: TotalsQuery, release: Release, expectation: Expectation
) -> Estimate:
    """The root of the variance; steps move it by at most one of them."""
    rows, middle, squares = _ranges(release, expectation)
    count, total, square = _numbers(release)
    reach, step = query.reach, query.step

    def spread(mean_square: float, mean: float, n: float) -> float:
        """In steps: d counts half steps, and its squares are kept as 2·d² − R²."""
        variance = ((mean_square + reach**2) / 2 - mean**2) / 4
        return math.sqrt(max(variance, 0.0) * max(n, 2.0) / (max(n, 2.0) - 1))

    low_mean, high_mean = _ratio(middle, rows)
    low_square, high_square = _ratio(squares, rows)
    least = 0.0 if low_mean <= 0 <= high_mean else min(abs(low_mean), abs(high_mean))
    low = spread(low_square, max(abs(low_mean), abs(high_mean)), rows[1])
    high = spread(high_square, least, rows[0])
    found = spread(square / max(count, 1.0), total / max(count, 1.0), count)
    widest = reach / 2 * math.sqrt(2)  # two rows at the two ends
    slack = 0.0 if step == 1 else 1.0
    unit = step / 10**query.decimals
    ends = max(low - slack, 0.0) * unit, min(high + slack, widest + slack) * unit
    return min(found, widest) * unit, ends


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
