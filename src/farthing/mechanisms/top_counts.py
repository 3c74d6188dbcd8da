"""The largest counts, which mechanisms for unknown domains look at, and the order of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from farthing.mechanisms.histogram import Histogram, Labels
from farthing.mechanisms.noise.exact_sampling import Integers
from farthing.mechanisms.protocol import Release


@dataclass(frozen=True, slots=True)
class TopCounts:
    """Positions of the largest positive counts, the counts, and the largest one left out (or 0)."""

    positions: Integers
    counts: Integers
    cutoff: int


def positive_counts(histogram: Histogram) -> TopCounts:
    """Every label with a positive count; nothing is left out."""
    present = np.flatnonzero(histogram.counts)
    return TopCounts(present, histogram.counts[present], 0)


def top_counts(histogram: Histogram, candidates: int) -> TopCounts:
    """The `candidates` largest positive counts; ties at the edge go by `label_order`.

    The proofs need a fixed order of labels here, the same for every dataset: then a label
    whose count did not rise cannot enter because another user joined. A caller that hands in
    only the largest candidates + 1 counts must break its ties by the same order.
    """
    present = np.flatnonzero(histogram.counts)
    if present.size <= candidates:
        return positive_counts(histogram)
    counts = histogram.counts[present]
    edge = counts.size - candidates
    ordered = np.partition(counts, (edge - 1, edge))
    lowest, cutoff = int(ordered[edge]), int(ordered[edge - 1])
    above = present[counts > lowest]
    ties = present[counts == lowest]
    chosen = _first_by_label(histogram.labels, ties, candidates - above.size)
    index = np.concatenate((above, chosen))
    return TopCounts(index, histogram.counts[index], cutoff)


def _first_by_label(labels: Labels, positions: Integers, count: int) -> Integers:
    if count == positions.size:
        return positions
    tied = labels[positions]
    if tied.dtype.kind == "O":
        keys = [label_order(label) for label in tied.tolist()]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__)[:count], dtype=np.int64)
    else:
        order = np.argsort(tied, kind="stable")[:count]
    return positions[order]


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
