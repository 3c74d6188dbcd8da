"""The entries of a book: a frozen type for each kind, with its fields and what it does.

A book is a list of them. `take` applies one more to the state of its dataset, so replaying a book
is a fold. The guarded statements of the store enforce the same rules when entries are written.
"""

from collections.abc import Mapping
from typing import Any

from farthing.errors import FarthingError
from farthing.ledger.entries.accounts import (
    Grant,
    OpenAccount,
    OpenList,
    OpenTariff,
    Retire,
    Revoke,
)
from farthing.ledger.entries.charges import Abandon, Charge, Close, Reserve, Settlement
from farthing.ledger.entries.conversations import EndConversation, OpenConversation, Said
from farthing.ledger.entries.data import (
    AddDataset,
    Declaration,
    DeclareVersion,
    Describe,
    Relocate,
    Restore,
    Resume,
    Seal,
)
from farthing.ledger.entries.fact import Entry, Fact, read_fact, written_fact
from farthing.ledger.entries.state import Broken, Opened, State, require

__all__ = [
    "Abandon",
    "AddDataset",
    "Broken",
    "Charge",
    "Close",
    "Declaration",
    "DeclareVersion",
    "Describe",
    "EndConversation",
    "Entry",
    "Fact",
    "Grant",
    "OpenAccount",
    "OpenConversation",
    "OpenList",
    "OpenTariff",
    "Opened",
    "Relocate",
    "Reserve",
    "Restore",
    "Resume",
    "Retire",
    "Revoke",
    "Said",
    "Seal",
    "Settlement",
    "State",
    "read_fact",
    "take",
    "written_fact",
]


def take(state: State, number: int, said: Mapping[str, Any], previous: str) -> Fact:
    """The fact of one more entry, which follows on the hash `previous`, applied; or Broken."""
    state.last_hash = previous
    try:
        fact = read_fact(said)
        sealed = state.sealed_for is not None
        require(sealed == isinstance(fact, Resume), "it was sealed before, or never")
        require(number == 1 or state.declaration is not None, "a book begins with its dataset")
        fact.apply(state, number)
        about = state.declared_data().dataset.name
        require(fact.dataset == about, "it belongs to another dataset")
    except FarthingError as error:
        raise Broken(str(error)) from None
    return fact
