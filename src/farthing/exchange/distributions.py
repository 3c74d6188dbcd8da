"""To and from the privacy loss distributions of Google's dp-accounting.

A list that farthing composes optimally, such as a block of adaptively chosen selections, can
join an existing accountant, and a distribution from there can join a list here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.composition.adaptive.operators import Kernel, atoms_of
from farthing.composition.adaptive.profile_as_loss import loss_distribution_above
from farthing.composition.adaptive.profiles import curves
from farthing.composition.items import Losses, items_from, take_out_leaks
from farthing.errors import InvalidInput, Unsupported, require_choice, require_real
from farthing.guarantees.kinds import Guarantee, LossDistribution, TwoWayLoss
from farthing.numerics.ball import up
from farthing.numerics.curves import Chords, Grid
from farthing.optional import required

#: Beyond this epsilon floats end, and so does privacy.
FARTHEST = 500.0
#: More cells than this make no distribution that anybody could use.
MOST_CELLS = 10_000_000

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


def to_dp_accounting(
    items: Iterable[Guarantee | tuple[Guarantee, int]],
    *,
    adaptivity: str = "adaptive",
    interval: float = 1e-4,
    delta: float = 1e-12,
    tolerance: float = 1e-3,
) -> PrivacyLossDistribution:
    """A pessimistic distribution of the whole list, on the given discretisation interval.

    It dominates every way the list can be used, so it may be composed with anything else.
    `delta` is the smallest δ for which it should be accurate. Its infinity mass is what the list
    leaks and what its profile has beyond where it was cut off: the δ that no ε goes below.
    """
    pld = required("dp_accounting.pld")
    require_choice("adaptivity", adaptivity, ("none", "adaptive", "setwise"))
    interval = require_real("interval", interval, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    pmfs = [
        _pmf(pld, one, adaptivity, (interval, delta, tolerance))
        for one in items_from(items).directions()
    ]
    return pld.privacy_loss_distribution.PrivacyLossDistribution(*pmfs)


def _pmf(pld: Any, items: Losses, adaptivity: str, accuracy: tuple[float, float, float]) -> Any:
    """One direction of neighbours; with the unit comes first, which is `remove` there."""
    interval, delta, tolerance = accuracy
    leaky = take_out_leaks(items)
    if not leaky.items.known:
        raise Unsupported("only kinds with a known worst case have a privacy loss distribution")
    found = curves(leaky.items, adaptivity, tolerance, delta, whole=True)
    if found is None:
        raise Unsupported("this list is too long for one distribution; exchange it in blocks")
    atoms = atoms_of(found.upper)
    cells = 2 * float(np.abs(atoms.losses).max()) / interval + 2
    if cells > MOST_CELLS:
        raise InvalidInput(
            f"interval must leave at most {MOST_CELLS} cells; {interval} makes {cells:.3g}"
        )
    kernel = Kernel.of(atoms, Grid(interval, int(cells), 0))
    leak = up(leaky.leak)
    return pld.pld_pmf.DensePLDPmf(
        discretization=interval,
        lower_loss=-(kernel.first + len(kernel.weights) - 1),
        probs=kernel.weights[::-1] * (1 - leak),
        infinity_mass=min(1.0, kernel.infinity + leak),
        pessimistic_estimate=True,
    )


def from_dp_accounting(
    distribution: PrivacyLossDistribution, *, step: float = 1e-3, delta: float = 1e-12
) -> LossDistribution | TwoWayLoss:
    """A guarantee from a pessimistic distribution: its profile, read at multiples of `step`.

    A distribution with different losses for adding and for removing gives both of them, each for
    its own direction of neighbours. Infinity mass, outcomes that only one neighbour gives or that a
    truncated tail may give, becomes a leak: it is charged as δ, whatever ε is. What is read is as
    certain as the distribution's own floats; nothing is added for their rounding.
    """
    step = require_real("step", step, above=0)
    delta = require_real("delta", delta, above=0, below=1)
    # the distribution shows no single direction; its fields do, and hold for one each
    with_unit, without_unit = distribution._pmf_remove, distribution._pmf_add
    if with_unit is without_unit:
        return _read(distribution, step, delta)
    return TwoWayLoss(_read(with_unit, step, delta), _read(without_unit, step, delta))


def _read(distribution: Any, step: float, delta: float) -> LossDistribution:
    reach = max(float(distribution.get_epsilon_for_delta(delta)), 10 * step)
    if not reach <= FARTHEST:
        raise Unsupported(
            f"the distribution has no epsilon up to {FARTHEST:g} at delta = {delta}; "
            "read it at a larger delta"
        )
    cells = int(reach / step) + 2
    grid = Grid(step, cells, cells)
    values = np.asarray(distribution.get_delta_for_epsilon(grid.points()), dtype=np.float64)
    # a profile decreases; floats may not, and the running maximum from the right only adds
    values = np.maximum.accumulate(values[::-1])[::-1]
    return loss_distribution_above(Chords(grid, np.clip(values, 0.0, 1.0)))
