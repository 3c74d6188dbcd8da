"""Every way to spend a small tariff, tried one after the other, in 50 digits.

Deliberately naive: a tree over what to buy next, which t, and both answers, with farthings and
units of δ counted down. Every ε is a whole number of eighths, so that states repeat and can be
remembered; the threshold is any number.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from functools import cache

import farthing as fa

LATTICE = 8


def best_delta(tariff: fa.Tariff, threshold: float, *, refined: int = 1) -> Decimal:
    """The largest δ that an analyst reaches at ε = `threshold`.

    Exact for dp and adp items. For bounded range t is a multiple of 1/(8·refined), so the truth is
    a little larger (`loss_of_refinement`).
    """
    with localcontext(Context(prec=50)):
        return _best_delta(tariff, threshold, refined)


def loss_of_refinement(tariff: fa.Tariff, refined: int) -> float:
    """How much `best_delta` may miss at most.

    A profile falls with slope at most 1 in x and q_t with slope at most 1/(1 − e^−ε) in t, over
    values that differ by at most ε; so one step misses at most (2 + ε)·(distance to the nearest t).
    """
    ranges = [g.epsilon for g, _ in tariff.items.values() if isinstance(g, fa.BoundedRange)]
    if not ranges:
        return 0.0
    steps = tariff.farthings // min(price for _, price in tariff.items.values())
    return steps * (2 + max(ranges)) / (2 * LATTICE * refined)


def _best_delta(tariff: fa.Tariff, threshold: float, refined: int) -> Decimal:
    cells = LATTICE * refined
    items = [
        (*_moves(guarantee, cells), tariff.price(name))
        for name, (guarantee, _) in tariff.items.items()
    ]
    start = Decimal(threshold).exp()
    one = Decimal(1)

    @cache
    def grown(shift: int) -> Decimal:
        return start * (Decimal(shift) / cells).exp()

    @cache
    def value(farthings: int, units: int, shift: int) -> Decimal:
        best = max(one - grown(shift), Decimal(0))
        for delta, moves, price in items:
            if price.farthings > farthings or price.delta_units > units:
                continue
            rest = farthings - price.farthings, units - price.delta_units
            for chance, up, spread in moves:
                tried = chance * value(*rest, shift - up)
                tried += (one - chance) * value(*rest, shift - up + spread)
                best = max(best, delta + (one - delta) * tried)
        return best

    return value(tariff.farthings, tariff.delta_units, 0)


def _moves(guarantee: fa.Guarantee, cells: int) -> tuple[Decimal, list[tuple[Decimal, int, int]]]:
    """δ, and for each choice: the chance of the worse answer, its loss, how far the two differ."""
    assert isinstance(guarantee, fa.PureDP | fa.ApproximateDP | fa.BoundedRange)
    epsilon, one = Decimal(guarantee.epsilon), Decimal(1)
    whole = int(guarantee.epsilon * cells)
    assert whole == guarantee.epsilon * cells
    if not isinstance(guarantee, fa.BoundedRange):
        delta = guarantee.delta if isinstance(guarantee, fa.ApproximateDP) else 0.0
        return Decimal(delta), [(one / (one + (-epsilon).exp()), whole, 2 * whole)]
    chances = [
        (one - (Decimal(t) / cells - epsilon).exp()) / (one - (-epsilon).exp())
        for t in range(1, whole)
    ]
    return Decimal(0), [(chance, t, whole) for t, chance in enumerate(chances, start=1)]
