"""Limited access: what a mechanism for an unknown domain may look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from farthing.mechanisms.histogram import Histogram, Labels
from farthing.mechanisms.inverse_transform import Integers
from farthing.mechanisms.release import label_order


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
