"""What a mechanism gives out, and what it is charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from farthing.guarantees.kinds import ApproximateDP, Guarantee
from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.inverse_transform import Integers

#: What composition charges: guarantees, each with how often it is used. Independent steps.
Items: TypeAlias = tuple[tuple[Guarantee, int], ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Labels in order, with a count each where counts were bought.

    `stopped` says that a list ended because ⊥ came up, before the wanted number of labels. `moved`
    is how far at most a count was moved from its noisy value afterwards.
    """

    labels: tuple[Any, ...]
    counts: tuple[int | float, ...] | None = None
    stopped: bool = False
    moved: float = 0.0


def leak(delta: float) -> tuple[Guarantee, int]:
    """One item that tells everything with probability δ and nothing otherwise."""
    return (ApproximateDP(0.0, delta), 1)


def items(*pairs: tuple[Guarantee, int]) -> Items:
    """The pairs whose count is not zero."""
    return tuple((guarantee, count) for guarantee, count in pairs if count > 0)


def ranked(histogram: Histogram, positions: Integers, counts: Integers) -> Release:
    """The labels at these positions with their counts, highest first; ties by `label_order`.

    The order is a function of what is released, so it tells nothing more.
    """
    order = np.argsort(-counts, kind="stable")
    labels, ordered = list(labels_at(histogram, positions[order])), counts[order].tolist()
    key = None if {type(label) for label in labels} <= {str} else label_order
    edges = [0, *(np.flatnonzero(np.diff(counts[order])) + 1).tolist(), len(labels)]
    for start, end in pairwise(edges):
        if end - start > 1:
            labels[start:end] = sorted(labels[start:end], key=key)
    return Release(tuple(labels), tuple(ordered))


def labels_at(histogram: Histogram, positions: Integers | Sequence[int]) -> tuple[Any, ...]:
    """Labels as plain Python values."""
    return tuple(histogram.labels[positions].tolist())


def label_order(label: object) -> tuple[str, Any]:
    """A fixed order of all labels: by type, then by value, tuples and others by their text."""
    kind = type(label).__name__
    return (kind, label) if isinstance(label, (str, int, bytes)) else (kind, repr(label))
