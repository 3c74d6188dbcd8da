"""What a mechanism gives out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from farthing.mechanisms.histogram import Histogram
from farthing.mechanisms.inverse_transform import Integers


@dataclass(frozen=True, slots=True)
class Release:
    """Labels in order, with a count each where counts were bought.

    `stopped` says that a list ended because ⊥ came up, before the wanted number of labels. `moved`
    is how far at most a count was moved from its noisy value afterwards. `among`: these labels were
    chosen, by the counts that are released, from so many. `parts` are what was measured of each
    label, where that is more than a count.
    """

    labels: tuple[Any, ...]
    counts: tuple[int | float, ...] | None = None
    stopped: bool = False
    moved: float = 0.0
    among: int | None = None
    parts: tuple[Release, ...] = ()


def exact_means(draws: Sequence[Integers]) -> tuple[int | float, ...]:
    """The mean of each column as the nearest float; a single draw stays as it is."""
    if len(draws) == 1:
        return tuple(draws[0].tolist())
    columns = zip(*(draw.tolist() for draw in draws), strict=True)
    return tuple(float(Fraction(sum(column), len(draws))) for column in columns)


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
