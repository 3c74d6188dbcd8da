"""Parameters that all mechanisms share, checked the same way everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from flint import arb

from farthing.errors import require_count, require_real
from farthing.numerics.ball import down, in_balls


def _positive(name: str, value: object) -> float:
    return require_real(name, value, above=0)


def _at_least_one(name: str, value: object) -> int:
    return require_count(name, value, at_least=1)


def _probability(name: str, value: object) -> float:
    return require_real(name, value, above=0, below=1)


#: name → check. epsilon: per draw or per coordinate; contribution_limit: how many counts one
#: unit raises (ℓ0, Δ); per_key_limit: by how much each (ℓ∞, τ); candidates: how many of the
#: largest counts are looked at (d̄).
CHECKS: dict[str, Callable[[str, object], object]] = {
    "epsilon": _positive,
    "score_range": _positive,
    "delta": _probability,
    "probability": _probability,
    "k": _at_least_one,
    "candidates": _at_least_one,
    "contribution_limit": _at_least_one,
    "per_key_limit": _at_least_one,
}


def check(mechanism: object, *names: str, optional: tuple[str, ...] = ()) -> None:
    """Replace each named field of a frozen mechanism by its checked value."""
    for name in names:
        object.__setattr__(mechanism, name, CHECKS[name](name, getattr(mechanism, name)))
    for name in optional:
        value = getattr(mechanism, name)
        if value is not None:
            object.__setattr__(mechanism, name, CHECKS[name](name, value))


@lru_cache(maxsize=256)
@in_balls
def epsilon_less_leak(epsilon: float, delta: float) -> float:
    """ε + ln(1 − δ), rounded down: what remains of ε when ln(1/(1 − δ)) is set aside."""
    return down(arb(epsilon) + (-arb(delta)).log1p())
