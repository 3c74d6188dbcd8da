"""An accountant for guarantees that are chosen as you go."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from types import MappingProxyType

from farthing.canonical import digest
from farthing.composition.accounts.filters import Filters
from farthing.composition.bounds import Bracket
from farthing.composition.tariffs.prices import propose_prices
from farthing.composition.tariffs.tariff import Tariff
from farthing.errors import (
    FarthingError,
    InvalidInput,
    Unattainable,
    require_count,
    require_real,
)
from farthing.guarantees.kinds import Guarantee, ZeroConcentratedDP
from farthing.guarantees.losses import loss_of
from farthing.guarantees.notation import format_guarantee, parse_guarantee
from farthing.numerics.rounding import deflated, float_down, float_up
from farthing.whole_files import whole_file

FORMAT = "farthing accountant 2"
#: Files of earlier versions have Rényi orders only.
OF_ORDERS = "farthing accountant 1"
#: What most budgets are spent on has moments like this.
USUAL = ZeroConcentratedDP(1.0)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What would still fit: either ρ of zCDP, ε of pure DP, or Gaussian noise with 1/σ² up to
    `variance`; and the δ left for leaks."""

    rho: float
    epsilon: float
    delta: float
    variance: float = 0.0


class BudgetExceeded(FarthingError):
    """The request does not fit; nothing was spent.

    `requested` is the guarantee and its count, `remaining` what would still fit.
    """

    def __init__(self, requested: tuple[Guarantee, int], remaining: Allowance, why: str) -> None:
        guarantee, count = requested
        super().__init__(f"{count} x {format_guarantee(guarantee)} does not fit: {why}")
        self.requested = requested
        self.remaining = remaining
        self.why = why

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[object, ...]]:
        return BudgetExceeded, (self.requested, self.remaining, self.why)


class Accountant:
    """Spends (ε, δ) on guarantees that are chosen as you go, and never past it.

    Whatever is spent, in any order, chosen from all earlier answers, everything together is
    (ε, δ)-DP for add/remove neighbours (docs/theory/accountant.md). `leaks` is the part of δ that
    is set aside in advance for guarantees with a δ of their own; without it none of them fits.
    Most of δ is for one kind of filter, which sells nearly what a list fixed in advance affords:
    Gaussian noise as currency, or a Rényi order. The first purchase decides which, or `mostly`, the
    guarantee that you expect to buy most (docs/theory/filter.md). Others may be bought too.

    Re-composing past purchases is not a valid filter, so the accountant does not do it. The result
    is right for a list that was fixed in advance, but here the list depends on the answers: an
    analyst who buys more exactly when the answers revealed little exceeds δ, although every list
    that could be bought stays below it (the page above has an example). For the same reason there
    is no ε of what was spent so far; `Odometer` has one.

    An interactive mechanism is charged when it is opened. Where its guarantee only bounds moments,
    it must end before anything else is bought, unless the accountant is made with `interleaved`:
    then all of δ is for Rényi orders, which cover such conversations. `spend` is thread-safe. For a
    budget that several programs share, use a ledger. A tariff that is fixed in advance may afford
    more (`tariff_epsilon`).
    """

    def __init__(
        self,
        epsilon: float,
        delta: float,
        *,
        leaks: float = 0.0,
        mostly: Guarantee | None = None,
        interleaved: bool = False,
    ) -> None:
        self.epsilon = require_real("epsilon", epsilon, at_least=0)
        self.delta = require_real("delta", delta, at_least=0, below=1)
        self.leaks = require_real("leaks", leaks, at_least=0)
        if self.leaks > self.delta:
            raise InvalidInput(f"leaks must be at most delta = {self.delta:g}, got {leaks:g}")
        if mostly is not None and not isinstance(mostly, Guarantee):
            raise InvalidInput(f"mostly must be a guarantee, got {mostly!r:.60}")
        self._lock = Lock()
        self._leaked = Fraction(0)
        self._bought: dict[str, int] = {}
        #: One, or before the first purchase each way to divide δ.
        self._filters = Filters.choices(
            self.epsilon, self._rest, USUAL if mostly is None else mostly
        )
        if interleaved:
            self._filters = self._filters[:1]  # of orders
        if mostly is not None:
            self._filters = (self._best_for(mostly),)

    @property
    def _rest(self) -> float:
        """The δ that is not set aside."""
        return float_down(Fraction(self.delta) - Fraction(self.leaks))

    @property
    def order(self) -> float:
        """The first Rényi order."""
        return self._filters[0].order

    def spend(self, guarantee: Guarantee, count: int = 1) -> None:
        """Charge for `count` mechanisms with this guarantee, before they run.

        BudgetExceeded if they do not fit; then nothing is charged.
        """
        self._check(guarantee, count)
        with self._lock:
            after = self._after(guarantee, count)
            if isinstance(after, str):
                raise BudgetExceeded((guarantee, count), self._remaining(), after)
            filters, self._leaked = after
            self._filters = (filters,)
            text = format_guarantee(guarantee)
            self._bought[text] = self._bought.get(text, 0) + count

    def would_fit(self, guarantee: Guarantee, count: int = 1) -> bool:
        """Whether `spend` would accept it now."""
        self._check(guarantee, count)
        with self._lock:
            return not isinstance(self._after(guarantee, count), str)

    def how_many(self, guarantee: Guarantee) -> int:
        """The largest count that fits now."""
        leak = self._check(guarantee, 1)
        with self._lock:
            most = self._best_for(guarantee).how_many(guarantee)
            leaks = (Fraction(self.leaks) - self._leaked) // leak if leak > 0 else math.inf
        if min(most, leaks) == math.inf:
            raise Unattainable("a guarantee that reveals nothing fits any number of times")
        return int(min(most, leaks))

    @property
    def remaining(self) -> Allowance:
        """What would still fit, rounded down."""
        with self._lock:
            return self._remaining()

    @property
    def spent(self) -> float:
        """The share of the budget that is spent, in the filter that has most left; rounded up."""
        with self._lock:
            return float_up(min(filters.share for filters in self._filters))

    @property
    def bought(self) -> Mapping[str, int]:
        """How often each guarantee was bought, by its short text."""
        with self._lock:
            return MappingProxyType(dict(self._bought))

    def as_tariff(self, *, finest: int = 1) -> Tariff:
        """A tariff that would have sold what was bought so far, priced by ρ.

        A tariff must be fixed before the first answer, so this one is for the next time.
        """
        items = {text: parse_guarantee(text) for text in self.bought}
        prices = propose_prices(items, finest=finest)
        leaks = [loss_of(guarantee).leak for guarantee in items.values()]
        unit = min((leak for leak in leaks if leak > 0), default=1e-12)
        priced = {text: (guarantee, prices[text]) for text, guarantee in items.items()}
        total = Tariff(priced, 1, 0, unit).price_of(self.bought)
        return Tariff(priced, total.farthings, total.delta_units, unit)

    def tariff_epsilon(self, *, finest: int = 1) -> Bracket:
        """The ε, at this δ, of a tariff fixed in advance that sells what was bought so far."""
        tariff = self.as_tariff(finest=finest)
        (_, bracket), *_ = tariff.certify(deltas=(self.delta,), epsilons=()).epsilons
        return bracket

    def to_json(self) -> dict[str, object]:
        """Everything as plain data, with a digest. Numbers that add up are exact fractions."""
        with self._lock:
            body: dict[str, object] = {
                "format": FORMAT,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "leaks": self.leaks,
                "filters": [filters.to_json() for filters in self._filters],
                "leaked": str(self._leaked),
                "bought": dict(self._bought),
            }
        return {**body, "digest": digest(body)}

    @classmethod
    def from_json(cls, data: object) -> Accountant:
        """Restores what `to_json` gave; caps are computed again."""
        try:
            return cls._read(data)
        except (KeyError, TypeError, ValueError, ZeroDivisionError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"this is not {FORMAT!r} as `to_json` gives it") from None

    @classmethod
    def _read(cls, data: object) -> Accountant:
        if not isinstance(data, dict) or data.get("format") not in (FORMAT, OF_ORDERS):
            raise InvalidInput(f"an accountant must have the format {FORMAT!r}")
        body = {name: value for name, value in data.items() if name != "digest"}
        if data.get("digest") != digest(body):
            raise InvalidInput("the digest of this accountant does not match: it was changed")
        made = cls(data["epsilon"], data["delta"], leaks=data["leaks"])
        parts = [data] if data["format"] == OF_ORDERS else data["filters"]
        made._filters = tuple(Filters.read(part, made.epsilon, made._rest) for part in parts)
        made._leaked = Fraction(data["leaked"])
        made._bought = {
            str(k): require_count("count", n, at_least=1) for k, n in data["bought"].items()
        }
        if made._leaked < 0 or (len(parts) != 1 and (made._bought or not parts)):
            raise InvalidInput("the orders and amounts of this accountant do not match")
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file whole or not at all. An older copy does not know what was spent since."""
        with whole_file(path) as file:
            file.write(json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Accountant:
        """Read what `save` wrote."""
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise InvalidInput(f"{path} is not JSON") from None
        return cls.from_json(data)

    def __repr__(self) -> str:
        return (
            f"Accountant(epsilon={self.epsilon!r}, delta={self.delta!r}, leaks={self.leaks!r}, "
            f"order={self.order!r}; {100 * self.spent:.4g} % spent)"
        )

    def _check(self, guarantee: object, count: object) -> Fraction:
        """The leak of one, if both are what they should be."""
        if not isinstance(guarantee, Guarantee):
            raise InvalidInput(f"a guarantee is needed, got {guarantee!r:.60}")
        require_count("count", count, at_least=1)
        return self._filters[0].charge(guarantee).leak

    def _best_for(self, guarantee: Guarantee) -> Filters:
        """Of several ways to divide δ, the one that sells most of this."""
        if len(self._filters) == 1:
            return self._filters[0]
        return max(self._filters, key=lambda filters: filters.how_many(guarantee))

    def _after(self, guarantee: Guarantee, count: int) -> tuple[Filters, Fraction] | str:
        """The filters and the leaks after the purchase, or the reason why it does not fit."""
        leak = self._check(guarantee, count)
        leaked = self._leaked + count * leak
        if leaked > Fraction(self.leaks):
            left = float_down(Fraction(self.leaks) - self._leaked)
            return (
                f"its delta is {float_up(count * leak):g}, and {left:g} is left of what was "
                "set aside for that by leaks=… when the accountant was made"
            )
        after = self._best_for(guarantee).after(guarantee, count)
        if after is None:
            fitting = self._remaining()
            return (
                f"rho = {fitting.rho:.6g}, epsilon = {fitting.epsilon:.6g} or Gaussian noise of "
                f"variance {fitting.variance:.6g} would still fit"
            )
        return after, leaked

    def _remaining(self) -> Allowance:
        left = [pair for filters in self._filters for pair in filters.left]
        rhos = [amount / Fraction(order) for order, amount in left if math.isfinite(order)]
        balances = [filters.balance for filters in self._filters if filters.balance is not None]
        return Allowance(
            rho=deflated(float_down(max(rhos, default=Fraction(0))), 8),  # charges are rounded up
            epsilon=float_down(max((amount for _, amount in left), default=Fraction(0))),
            delta=float_down(Fraction(self.leaks) - self._leaked),
            variance=deflated(float_down(max(balances, default=Fraction(0))), 8),
        )
