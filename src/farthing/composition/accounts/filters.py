"""Filters side by side: a purchase fits if one of them sells it, and each has a share of δ.

The Rényi orders and basic composition (`renyi_filter`), and Gaussian noise as currency
(`gaussian_filter`). All of them are charged for every purchase; one that cannot pay has ended.
docs/theory/filter.md, "Several filters", has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from farthing.composition.accounts.gaussian_filter import GaussianFilter
from farthing.composition.accounts.renyi_filter import Cap, Charge, best_order, caps, cost_of
from farthing.composition.accounts.unit_filter import UnitFilter
from farthing.composition.adaptive.normal_prices import sold
from farthing.errors import InvalidInput, require_count, require_real
from farthing.guarantees.kinds import Guarantee
from farthing.guarantees.losses import loss_of
from farthing.guarantees.losses.base import Loss
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.numerics.rounding import deflated

#: How many are held of each other kind, by its losses.
Pockets = tuple[tuple[tuple[Loss, ...], int], ...]
#: The share of δ of the Rényi orders where most of it is for Gaussian noise.
BESIDE = 1 / 64


@dataclass(frozen=True, slots=True)
class Filters:
    """What was spent in each Rényi order, and what is left of Gaussian noise; None: has ended."""

    order: float
    caps: tuple[Cap, ...]
    spent: tuple[Fraction | None, ...]
    noise: GaussianFilter | None = None
    balance: Fraction | None = None
    own: UnitFilter | None = None
    units: int = 0
    pockets: Pockets = ()

    @staticmethod
    def choices(epsilon: float, delta: float, mostly: Guarantee) -> tuple[Filters, ...]:
        """Ways to divide δ, none of which has been used yet."""
        orders = Filters.of_orders(epsilon, delta, best_order(epsilon, delta, mostly))
        if delta == 0:
            return (orders,)
        order = best_order(epsilon, delta * BESIDE, mostly)
        unit = Filters.of_units(epsilon, delta, order, mostly)
        noise = Filters.of_noise(epsilon, delta, order)
        return (orders, noise) if unit is None else (orders, noise, unit)

    @staticmethod
    def of_orders(epsilon: float, delta: float, order: float) -> Filters:
        """Nothing is spent, and all of δ is for the Rényi orders."""
        limits = caps(epsilon, delta, order)
        return Filters(order, limits, (Fraction(0),) * len(limits))

    @staticmethod
    def of_noise(epsilon: float, delta: float, order: float) -> Filters:
        """Nothing is spent, and most of δ is for Gaussian noise."""
        noise = GaussianFilter.of(epsilon, deflated(delta * (1 - BESIDE), 8))
        orders = Filters.of_orders(epsilon, delta * BESIDE, order)
        return replace(orders, noise=noise, balance=Fraction(noise.grant))

    @staticmethod
    def of_units(epsilon: float, delta: float, order: float, unit: Guarantee) -> Filters | None:
        """Nothing is spent, and most of δ is for this guarantee; None if it is no currency."""
        own = UnitFilter.of(losses_without_leak(unit), epsilon, deflated(delta * (1 - BESIDE), 8))
        if own is None:
            return None
        orders = Filters.of_orders(epsilon, delta * BESIDE, order)
        return replace(orders, noise=own.noise, balance=Fraction(0), own=own, units=own.grant)

    def charge(self, guarantee: Guarantee) -> Charge:
        """What one of it costs in each Rényi order, and its leak."""
        return cost_of(guarantee, tuple(cap.order for cap in self.caps))

    def _sold(self, guarantee: Guarantee, most: int | None = None) -> tuple[int, Filters]:
        """How many are sold for units and noise, and what is left; `balance` is not None.

        Units of another kind are changed as soon as that is needed.
        """
        units, balance, losses, times = self.units, self.balance, losses_without_leak(guarantee), 0
        assert self.noise is not None
        assert balance is not None
        pockets, own = dict(self.pockets), self.own
        if own is not None and losses == own.losses:
            times = units if most is None else min(units, most)
            units -= times
        elif own is not None and own.has_pocket_for(losses):
            while times != most:
                held = pockets.get(losses, 0)
                now = held if most is None else min(held, most - times)
                times, pockets[losses] = times + now, held - now
                if times == most or units == 0:
                    break
                if (changed := own.changed(units, losses, Fraction(1))) is None:
                    break
                units, pockets[losses] = units - changed[0], pockets[losses] + int(changed[1])
        rates = self.noise.rates(losses) if times != most and (units or balance) else ()
        while rates and times != most:
            now, balance = sold(balance, rates, None if most is None else most - times)
            times += now
            if times == most or own is None or units == 0:
                break
            if (changed := own.changed(units, None, rates[0].least - balance)) is None:
                break
            units, balance = units - changed[0], balance + changed[1]
        left = tuple((kind, held) for kind, held in pockets.items() if held > 0)
        return times, replace(self, units=units, balance=balance, pockets=left)

    def how_many(self, guarantee: Guarantee) -> float:
        """The largest count that one of the filters still sells; infinite if it is free."""
        moments = self.charge(guarantee).moments
        counts = [
            (cap.most - spent) // moment if moment > 0 else math.inf
            for cap, spent, moment in zip(self.caps, self.spent, moments, strict=True)
            if spent is not None and moment is not None and spent <= cap.most
        ]
        if math.inf not in counts and self.balance is not None:
            counts.append(self._sold(guarantee)[0])
        return max(counts, default=0)

    def after(self, guarantee: Guarantee, count: int) -> Filters | None:
        """What all filters are after a purchase; None if all of them have ended then."""
        moments = self.charge(guarantee).moments
        spent = tuple(
            None if before is None or moment is None else before + count * moment
            for before, moment in zip(self.spent, moments, strict=True)
        )
        after = self
        if self.balance is not None and any(moment != 0 for moment in moments):
            times, after = self._sold(guarantee, count)
            if times < count:
                after = replace(after, units=0, balance=None, pockets=())
        after = replace(after, spent=spent)
        return after if after.left or after.balance is not None else None

    @property
    def left(self) -> list[tuple[float, Fraction]]:
        """(α, how much of D_α is left) for the orders that have not ended."""
        return [
            (cap.order, cap.most - total)
            for cap, total in zip(self.caps, self.spent, strict=True)
            if total is not None and total <= cap.most
        ]

    @property
    def share(self) -> Fraction:
        """The share of the budget that is spent, in the filter that has most left."""
        shares = [
            total / cap.most if cap.most > 0 else Fraction(int(total > 0))
            for cap, total in zip(self.caps, self.spent, strict=True)
            if total is not None
        ]
        if self.noise is not None and self.balance is not None and self.noise.grant > 0:
            left = self.balance / Fraction(self.noise.grant)
            left += 0 if self.own is None else Fraction(self.units, self.own.grant)
            shares.append(max(Fraction(0), 1 - left))
        return min(shares, default=Fraction(1))

    def to_json(self) -> dict[str, object]:
        """As plain data; amounts are exact fractions."""
        return {
            "order": self.order,
            "orders": [None if math.isinf(cap.order) else cap.order for cap in self.caps],
            "spent": [None if total is None else str(total) for total in self.spent],
            "noise": self.noise is not None,
            "unit": None if self.own is None else format_guarantee(self.own.losses[0].guarantee),
            "units": self.units,
            "pockets": {format_guarantee(kind[0].guarantee): held for kind, held in self.pockets},
            "balance": None if self.balance is None else str(self.balance),
        }

    @staticmethod
    def read(data: Mapping[str, Any], epsilon: float, delta: float) -> Filters:
        """Restores what `to_json` gave; caps are computed again."""
        order = require_real("order", data["order"], above=1)
        made: Filters | None = Filters.of_orders(epsilon, delta, order)
        if data.get("unit") is not None:
            made = Filters.of_units(epsilon, delta, order, parse_guarantee(data["unit"]))
        elif data.get("noise"):
            made = Filters.of_noise(epsilon, delta, order)
        if made is None:
            raise InvalidInput("the unit of this accountant is no currency")
        orders = tuple(math.inf if one is None else one for one in data["orders"])
        spent = tuple(None if one is None else Fraction(one) for one in data["spent"])
        text = data.get("balance")
        balance = None if text is None else Fraction(text)
        units = require_count("units", data.get("units", 0), at_least=0)
        pockets = tuple(
            (losses_without_leak(parse_guarantee(kind)), require_count("count", held, at_least=1))
            for kind, held in data.get("pockets", {}).items()
        )
        most = 0 if made.noise is None else Fraction(made.noise.grant)
        known = units <= made.units and (made.own is not None or not pockets)
        known &= balance is None or (made.balance is not None and 0 <= balance <= most)
        below = any(total is not None and total < 0 for total in spent)
        same = orders == tuple(cap.order for cap in made.caps) and len(spent) == len(orders)
        if below or not (known and same):
            raise InvalidInput("the orders and amounts of this accountant do not match")
        return replace(made, spent=spent, balance=balance, units=units, pockets=pockets)


def losses_without_leak(guarantee: Guarantee) -> tuple[Loss, ...]:
    """The loss in both directions, without leaks; once if both are the same."""
    ways = (loss_of(guarantee, with_unit=way).whole().without_leak() for way in (True, False))
    return tuple(dict.fromkeys(ways))
