"""Along the chain of one dataset: hashes, numbers and what each entry may follow on."""

from __future__ import annotations

import json
from collections.abc import Mapping

from farthing.canonical import canonical, sha256
from farthing.errors import InvalidInput
from farthing.ledger.chain import GENESIS, linked
from farthing.ledger.declared_data import Declared
from farthing.ledger.entries import Broken, Fact, State, take
from farthing.ledger.errors import Damaged
from farthing.progress import tell

#: So many entries are read between two words about it.
ENTRIES_BETWEEN_NEWS = 1000


class ChainCheck:
    """Takes the entries of a dataset one by one; the first that is wrong is named."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.number = 0
        self.previous = GENESIS
        self.hash = GENESIS
        self.state = State()

    def take(self, number: int, written: str, previous: str, hash_: str) -> Fact:
        """The fact of the next entry, or Damaged."""
        if number != self.number + 1:
            raise self.bad(self.number + 1, f"it is missing; the next one there is {number}")
        if previous != self.hash:
            raise self.bad(number, "it does not continue the entry before it")
        if hash_ != linked(previous, sha256(written)):
            raise self.bad(number, "its hash does not match what it says")
        try:
            said = json.loads(written)
            if not isinstance(said, dict) or canonical(said) != written:
                raise Broken("it is not in canonical form")
            fact = take(self.state, number, said, previous)
        except (ValueError, RecursionError, Broken) as error:
            raise self.bad(number, str(error)) from None
        self.number, self.previous, self.hash = number, previous, hash_
        if number % ENTRIES_BETWEEN_NEWS == 0:
            tell(f"{number} entries of {self.dataset}")
        return fact

    def bad(self, number: int, why: str) -> Damaged:
        return Damaged(f"entry {number} of {self.dataset} is bad: {why}", self.dataset, number)


def require_company(known: Mapping[str, Declared], walk: ChainCheck) -> None:
    """What shares data is there together and about one unit: statements are about all of it."""
    declared = walk.state.declared_data()
    for other in declared.beside:
        if other not in known:
            raise InvalidInput(f"{walk.dataset} stands beside {other}, which must come with it")
        if known[other].dataset.unit != declared.dataset.unit:
            raise InvalidInput(f"{walk.dataset} and {other} share data, but not their unit")
