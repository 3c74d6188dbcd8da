"""The k most frequent labels, with counts if wanted."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar

from farthing.engine.kinds import fields
from farthing.engine.kinds.base import (
    COUNT,
    LEAK,
    SELECT,
    Paid,
    Query,
    coordinate_of,
    counts_with,
    delta_of_leak,
    epsilon_of_selection,
    thresholded,
)
from farthing.engine.kinds.labels import LabelQuery
from farthing.engine.show.captions import Names, Words
from farthing.errors import InvalidInput, require_choice
from farthing.guarantees.kinds import Guarantee, PureDP
from farthing.mechanisms import (
    KnownGumbel,
    Largest,
    Mechanism,
    Repeated,
    TopKWithCounts,
    UnknownCounts,
    UnknownGumbel,
)

#: Mechanisms that release labels and counts in one step.
AT_ONCE = ("noise", "truncated")
#: By default so many of the largest counts of an unknown domain are looked at.
CANDIDATES = 1000


@dataclass(frozen=True, slots=True)
class TopKQuery(LabelQuery):
    """The k labels with about the largest counts, in order, with counts if wanted.

    `mechanism` is "gumbel" (select labels, then count the selected ones), "noise" (noisy counts
    of everything, the largest of them) or "truncated" (the same with Gaussian noise that has no
    tails, for an unknown domain). An unknown domain is looked at through its `candidates`
    largest counts. `contribution_limit` None: a unit may have any number of labels. `use_order`
    fits Gaussian counts to the discovered order (CountMLE), which costs nothing.
    """

    k: Annotated[int, "How many labels."] = 10
    _: KW_ONLY
    counts: Annotated[bool, "Count them too."] = True
    mechanism: Annotated[str, "gumbel, noise or truncated."] = "gumbel"
    candidates: Annotated[int | None, "Look only at this many of the largest counts."] = None
    use_order: Annotated[bool, "Fit Gaussian counts to the order found."] = False
    select: fields.SelectItem = None
    kind: ClassVar[str] = "top_k"
    #: The order is what was asked for.
    in_order = Query.in_order

    def check_fields(self) -> None:
        LabelQuery.check_fields(self)
        require_choice("mechanism", self.mechanism, ("gumbel", *AT_ONCE))
        if self.domain is not None and self.k > len(self.domain):
            raise InvalidInput(
                f"k must be at most the number of categories, got k = {self.k} "
                f"and {len(self.domain)} categories"
            )
        if self.candidates is not None and self.candidates < self.k:
            raise InvalidInput(
                f"candidates must be at least k, got {self.candidates} and k = {self.k}"
            )
        if self.mechanism in AT_ONCE:
            self._check_at_once()
        if self.use_order and (not self.counts or self.repeats > 1):
            raise InvalidInput("use_order is for counts that are drawn once")
        if self.repeats > 1 and not self.counts:
            raise InvalidInput("repeats makes counts more accurate; without counts it must be 1")

    def _check_at_once(self) -> None:
        name = self.mechanism
        if not self.counts or self.repeats > 1:
            raise InvalidInput(f'mechanism "{name}" draws its counts once and releases them')
        if self.use_order:
            raise InvalidInput(f'mechanism "{name}" discovers no order; use_order needs "gumbel"')
        if name == "truncated" and self.domain is not None:
            raise InvalidInput('mechanism "truncated" is for an unknown domain, without categories')

    @property
    def drops(self) -> bool:
        """Selections, and counts of what was selected, need no limit."""
        return self.mechanism in AT_ONCE

    @property
    def coordinates(self) -> int:
        """How many of the noisy counts one unit can change."""
        if self.mechanism in AT_ONCE:
            assert self.limit is not None
            return self.limit
        return self.k if self.limit is None else min(self.k, self.limit)

    def roles(self) -> dict[str, int]:
        leak = {LEAK: 1} if self.domain is None else {}
        if self.mechanism in AT_ONCE:
            return {COUNT: self.coordinates, **leak}
        counts = {COUNT: self.coordinates * self.repeats} if self.counts else {}
        return {SELECT: self.k, **counts, **leak}

    @property
    def _gaussian(self) -> bool:
        """Only Gaussian noise will do."""
        return self.use_order or self.mechanism == "truncated"

    def needs(self, role: str) -> str:
        if role == COUNT and self._gaussian:
            return f"a Gaussian item (gauss:σ, dgauss:σ,{self.per_key_limit})"
        return LabelQuery.needs(self, role)

    def suits(self, role: str, guarantee: Guarantee) -> bool:
        if role == COUNT and self._gaussian and isinstance(guarantee, PureDP):
            return False
        return LabelQuery.suits(self, role, guarantee)

    @property
    def most_repeats(self) -> int:
        drawn_again = self.counts and self.mechanism == "gumbel" and not self.use_order
        return fields.LARGEST_REPEATS if drawn_again else 1

    def mechanism_for(self, paid: Paid) -> Mechanism[Any]:
        if self.mechanism in AT_ONCE:
            return Largest(self._at_once(paid), self.k)
        selection = self._selection(paid)
        if not self.counts:
            return selection
        counting = counts_with(paid, self.coordinates, self.per_key_limit)
        once = TopKWithCounts(selection=selection, counting=counting, use_order=self.use_order)
        return Repeated(once, self.repeats)

    def _selection(self, paid: Paid) -> KnownGumbel | UnknownGumbel:
        if self.domain is not None:
            return KnownGumbel(
                epsilon=epsilon_of_selection(paid), k=self.k, per_key_limit=self.per_key_limit
            )
        return UnknownGumbel(
            epsilon=epsilon_of_selection(paid),
            delta=delta_of_leak(paid),
            k=self.k,
            candidates=self._looked_at,
            per_key_limit=self.per_key_limit,
            contribution_limit=fields.stated(self.contribution_limit),
        )

    @property
    def _looked_at(self) -> int:
        return max(CANDIDATES, 10 * self.k) if self.candidates is None else self.candidates

    def _at_once(self, paid: Paid) -> Mechanism[Any]:
        """Noisy counts of everything, or of the largest counts; the k largest are kept."""
        if self.domain is not None:
            return counts_with(paid, self.coordinates, self.per_key_limit)
        coordinate = coordinate_of(paid)
        truncated = self.mechanism == "truncated"
        limited = self.candidates is not None if truncated else isinstance(coordinate, PureDP)
        if limited:
            return UnknownCounts(
                coordinate=coordinate,
                delta=delta_of_leak(paid),
                candidates=self._looked_at,
                contribution_limit=self.coordinates,
                per_key_limit=self.per_key_limit,
            )
        return thresholded(paid, self.coordinates, self.per_key_limit, truncated=truncated)

    @property
    def bars(self) -> int | None:
        """None where labels are chosen by their counts: those intervals hold for all labels."""
        return self.k if self.mechanism == "gumbel" else None

    def words(self, names: Names) -> Words:
        labels = names.labels(self.key)
        chosen = labels.one if self.k == 1 else labels.many(self.k)
        most = "with the most rows" if self.counts_rows else (
            f"{labels.verb} the most {names.unit.several}"
        )  # fmt: skip # one choice
        return self.read_as(f"The {chosen} {most}", f"{self.kind} ({self.mechanism})", names)
