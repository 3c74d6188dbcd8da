"""The recursion of Lemma 6.1 [DDR20] and Lemma 5.1 [CR22] by dense search over t, in floats.

A search over finitely many t is what some adversary plays, so every value here lies at or
below the optimum; with n choices per step it is short of it by a multiple of 1/n².
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Step = tuple[str, float]


def one_range(epsilon: float, x: Array) -> Array:
    """The profile of a single ε-bounded-range mechanism: t = (|x| + ε)/2 is best."""
    inside = np.clip(np.abs(x), 0, epsilon)
    value = np.expm1((inside - epsilon) / 2) ** 2 / -np.expm1(-epsilon)
    return np.where(x >= 0, value, 1 - np.exp(x) * (1 - value))


def optimum(steps: list[Step], x: Array | float, choices: int) -> Array:
    """δ of `steps` in this order at every x, t restricted to `choices` + 1 values per step."""
    x = np.asarray(x, dtype=np.float64)
    if not steps:
        return np.maximum(-np.expm1(x), 0.0)
    (kind, epsilon), later = steps[0], steps[1:]
    if kind == "dp":
        q = 1 / (1 + np.exp(-epsilon))
        return q * optimum(later, x - epsilon, choices) + (1 - q) * optimum(
            later, x + epsilon, choices
        )
    if not later:
        return one_range(epsilon, x)
    t = np.linspace(0, epsilon, choices + 1)
    q = np.expm1(t - epsilon) / np.expm1(-epsilon)
    near = optimum(later, x[..., None] - t, choices)
    far = optimum(later, x[..., None] + epsilon - t, choices)
    return np.max(q * near + (1 - q) * far, axis=-1)


def worst_order(steps: list[Step], x: Array | float, choices: int) -> Array:
    """The worst of all orders that are fixed in advance."""
    return np.max([optimum(list(o), x, choices) for o in set(permutations(steps))], axis=0)


def set_wise(steps: list[Step], x: Array | float, choices: int) -> Array:
    """The order too is chosen as you go: at every point the worst next step."""
    x = np.asarray(x, dtype=np.float64)
    if len(steps) <= 1:
        return optimum(steps, x, choices)
    return np.max([_then(step, _without(steps, step), x, choices) for step in set(steps)], axis=0)


def _then(step: Step, later: list[Step], x: Array, choices: int) -> Array:
    kind, epsilon = step
    if kind == "dp":
        q = 1 / (1 + np.exp(-epsilon))
        return q * set_wise(later, x - epsilon, choices) + (1 - q) * set_wise(
            later, x + epsilon, choices
        )
    t = np.linspace(0, epsilon, choices + 1)
    q = np.expm1(t - epsilon) / np.expm1(-epsilon)
    near, far = (
        set_wise(later, x[..., None] - t, choices),
        set_wise(later, x[..., None] + epsilon - t, choices),
    )
    return np.max(q * near + (1 - q) * far, axis=-1)


def _without(steps: list[Step], step: Step) -> list[Step]:
    rest = list(steps)
    rest.remove(step)
    return rest
