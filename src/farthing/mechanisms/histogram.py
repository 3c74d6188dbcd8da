"""Histograms: labels with whole-number counts, checked once, as mechanisms take them.

Mechanisms for unknown domains look at the largest counts alone, and need an order of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from farthing.errors import InvalidInput
from farthing.mechanisms.noise.exact_sampling import Integers
from farthing.mechanisms.protocol import Release

Labels: TypeAlias = npt.NDArray[Any]


#: Counts stay below this, so that a count plus noise stays inside 64 bits.
LARGEST_COUNT = 1 << 62


@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class Histogram:
    """Distinct labels with a whole-number count each, as read-only NumPy arrays.

    Anything NumPy can read is accepted (lists, NumPy and Arrow arrays). For a mechanism with a
    known domain the labels are the public domain, zeros included; for one with an unknown
    domain they come from the data, and labels with count 0 are as good as absent. Errors say
    how many entries are wrong and where the first one is, never what it holds.
    """

    labels: Labels
    counts: Integers

    def __init__(self, labels: ArrayLike, counts: ArrayLike) -> None:
        names, numbers = _label_array(labels), _count_array(counts)
        if names.size != numbers.size:
            raise InvalidInput(
                f"labels and counts must have the same length, got {names.size} and {numbers.size}"
            )
        if names.size == 0:
            raise InvalidInput(
                "a histogram must have at least one label, got none; where the data may have no "
                "rows and the domain is unknown, use Histogram.without_rows()"
            )
        _require_distinct(names)
        object.__setattr__(self, "labels", _frozen(names))
        object.__setattr__(self, "counts", _frozen(numbers))

    @classmethod
    def over(cls, domain: ArrayLike, labels: ArrayLike, counts: ArrayLike) -> Histogram:
        """The counts on a public domain: absent labels get 0, labels outside it are dropped."""
        place = {label: i for i, label in enumerate(_label_array(domain).tolist())}
        observed = cls(_label_array(labels), _count_array(counts))
        result = np.zeros(len(place), dtype=np.int64)
        for label, count in zip(observed.labels.tolist(), observed.counts.tolist(), strict=True):
            if label in place:
                result[place[label]] = count
        return cls(_label_array(domain), result)

    @classmethod
    def without_rows(cls) -> Histogram:
        """The histogram of no rows over an unknown domain: no label has a count.

        Refusing to run would reveal that there are no rows, so an engine passes this instead.
        """
        return cls(np.array([""]), np.array([0]))

    def __len__(self) -> int:
        return int(self.counts.size)

    def __repr__(self) -> str:
        return f"Histogram({len(self)} labels)"


def _label_array(labels: ArrayLike) -> Labels:
    if isinstance(labels, (str, bytes)):
        raise InvalidInput("labels must be a sequence of labels, got a single string")
    array: Labels
    if isinstance(labels, (list, tuple)) and (
        len(kinds := set(map(type, labels))) != 1 or kinds == {tuple}
    ):
        array = np.empty(len(labels), dtype=object)  # NumPy would make a table, or common text
        array[:] = labels
    else:
        array = np.asarray(labels)
    if array.ndim != 1:
        raise InvalidInput(f"labels must be one-dimensional, got {array.ndim} dimensions")
    if array.dtype.kind not in "iuUSbO":
        raise InvalidInput(
            f"labels must be whole numbers, text or tuples of them, got the type {array.dtype}"
        )
    return array


def _count_array(counts: ArrayLike) -> Integers:
    array = np.asarray(counts)
    if array.ndim != 1:
        raise InvalidInput(f"counts must be one-dimensional, got {array.ndim} dimensions")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind == "O":
        _refuse("whole numbers", [not _is_whole(value) for value in array.tolist()])
    elif array.dtype.kind == "f":
        _refuse("whole numbers", ~(np.isfinite(array) & (np.floor(array) == array)))
    elif array.dtype.kind not in "iu":
        raise InvalidInput(f"counts must be whole numbers, got the type {array.dtype}")
    _refuse("at least 0 and below 2^62", (array < 0) | (array >= LARGEST_COUNT))
    return array.astype(np.int64)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _refuse(wanted: str, wrong: Sequence[bool] | npt.NDArray[np.bool_]) -> None:
    positions = np.flatnonzero(wrong)
    if positions.size:
        raise InvalidInput(
            f"counts must be {wanted}; {positions.size} of {len(wrong)} are not, "
            f"the first at position {positions[0]}"
        )


def _require_distinct(labels: Labels) -> None:
    if labels.dtype.kind != "O" and bool(np.all(labels[1:] > labels[:-1])):
        return
    if labels.dtype.kind in "iub":
        distinct = int(np.unique(labels).size)
    else:
        try:
            distinct = len(set(labels.tolist()))
        except TypeError as error:
            raise InvalidInput("labels must be hashable, got at least one that is not") from error
    if distinct != labels.size:
        raise InvalidInput(
            f"labels must be distinct, got {labels.size} labels of which {distinct} are distinct"
        )


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


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
