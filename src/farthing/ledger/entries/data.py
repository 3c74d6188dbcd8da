"""Entries about the data, and about the place of its book."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from farthing.canonical import canonical
from farthing.ledger.declared_data import Declared, dataset_from_json, require_only_more
from farthing.ledger.entries.fact import Document, Fact, Hash, Name, Names, Places, kind
from farthing.ledger.entries.replay import State, require, understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Fact):
    """What an owner declares about a dataset."""

    description: Document
    beside: Names = field(default_factory=list)

    @classmethod
    def of(cls, declared: Declared, **more: Any) -> Self:
        """The entry that declares this; fields without a value are absent."""
        said = {**declared.to_json(), **more}
        return cls(absent=cls.later - said.keys(), **said)

    @property
    def declared(self) -> Declared:
        """The declaration, as a record."""
        former = tuple(getattr(self, "former", ()))
        dataset = understood(dataset_from_json, self.description)
        return Declared(dataset, tuple(self.beside), former)

    def declare(self, state: State, number: int) -> None:
        """Declare this from now on; the description must be exactly what a ledger writes."""
        declared = self.declared
        words = declared.dataset.to_json()
        if "contribution_limits" in self.description:  # the first format
            limit = words["limits"]["contribution_limit"]
            words = {name: words[name] for name in ("name", "unit", "owner", "relation")}
            words["contribution_limits"] = {} if limit is None else {"keys": limit}
        same = canonical(words) == canonical(self.description)
        require(same, "its description has something that no ledger writes")
        state.declaration, state.declared = declared, number


@kind("dataset")
class AddDataset(Declaration):
    """The first entry of a book, and the ledger that it is in."""

    later = frozenset({"beside", "ledger"})

    ledger: Name | None = None

    def apply(self, state: State, number: int) -> None:
        require(number == 1, "a dataset is described once, in entry 1")
        self.declare(state, number)
        state.home = self.ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAgain(Declaration):
    """A later declaration, with the former places of the data."""

    later = frozenset({"former"})

    former: Places = field(default_factory=list)


@kind("describe")
class Describe(DeclaredAgain):
    """Declare more about data that was added before."""

    def apply(self, state: State, number: int) -> None:
        before, after = state.declared_data(), self.declared
        require_only_more(before.dataset, after.dataset)
        goes_on = after.beside[: len(before.beside)] == before.beside
        require(goes_on, "datasets that share data cannot stop sharing it")
        require(after.former == before.former, "the data was in other places before")
        self.declare(state, number)


@kind("version")
class DeclareVersion(DeclaredAgain):
    """The rows are in another state now."""

    def apply(self, state: State, number: int) -> None:
        before, after = state.declared_data(), self.declared
        same = replace(before.dataset, version=after.dataset.version)
        require(after == replace(before, dataset=same), "it declares more than a version")
        self.declare(state, number)


@kind("relocate")
class Relocate(DeclaredAgain):
    """The data is in another place now. The old place stays known."""

    later = frozenset()

    def apply(self, state: State, number: int) -> None:
        after = self.declared
        expected = state.declared_data().relocated(after.dataset.location)
        require(after == expected, "it declares more than a place")
        self.declare(state, number)


@kind("seal")
class Seal(Fact):
    """The book ends here. The ledger that is named may go on with it."""

    successor: Name

    def apply(self, state: State, number: int) -> None:
        require(self.successor != state.home, "a book is sealed for another ledger")
        state.sealed_for = self.successor


@kind("resume")
class Resume(Fact):
    """A sealed book goes on in the ledger that its seal names."""

    after_seal = True

    ledger: Name
    seal: Hash

    def apply(self, state: State, number: int) -> None:
        require(self.ledger == state.sealed_for, "another ledger was named by the seal")
        require(self.seal == state.last_hash, "it names another seal")
        state.home, state.sealed_for = self.ledger, None


@kind("restore")
class Restore(Fact):
    """The book is restored from a copy. Nobody knows what was spent since: everything counts."""

    ledger: Name

    def apply(self, state: State, number: int) -> None:
        require(self.ledger != state.home, "a book is restored in another ledger")
        state.home, state.restored = self.ledger, number
        state.lots.clear()
        for row in state.purses.values():
            spent = {f"{name}_spent": row[name] for name in ("farthings", "delta_units")}
            row.update(open=0, **spent)
