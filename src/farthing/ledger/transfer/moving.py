"""A book moves from one ledger to another: sealed here, taken over there.

    seal in the source  →  export, and the noise beside it  →  import into the target

The seal is one transaction of the source, the import with the resumption one of the target.
Between them nobody sells, and `move` called again goes on from there; so at no moment do two
ledgers sell from one budget, wherever it is interrupted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from farthing.errors import InvalidInput
from farthing.ledger.entries import Entry, Resume, Seal
from farthing.ledger.errors import AlreadyThere, ReadOnly
from farthing.ledger.ledger import Ledger
from farthing.ledger.roles.reader import Reader
from farthing.ledger.store.queries import all_declared
from farthing.ledger.transfer.books import import_lines
from farthing.ledger.transfer.export import export_lines
from farthing.ledger.transfer.moving_conversations import forget_noise, pack
from farthing.ledger.writes.data import require_place


def move(source: Ledger, target: Ledger, dataset: str | None = None) -> dict[str, int]:
    """Move a dataset, with those beside it, or all that go on here; gives the entries of each.

    Open reservations move along and can be settled in the target; so do conversations, with
    their noise, which is removed from the source. What was moved there before is left as it is.
    """
    old, successor = source.reader(), target.reader().identity()
    if old.identity() == successor:
        raise InvalidInput("a book moves to another ledger, not to its own")
    names = [n for n in old.datasets() if _can_move(old, n, successor)]
    if dataset is not None:
        names = list(old.beside(dataset))
    moved: dict[str, int] = {}
    for name in names:
        if name not in moved:
            moved |= _move_together(source, target, old.beside(name), successor)
    return moved


def _move_together(
    source: Ledger, target: Ledger, names: tuple[str, ...], successor: str
) -> dict[str, int]:
    """Datasets that share data are taken over in one transaction: all of them or none."""
    old, new = source.reader(), target.reader()
    for name in names:
        if old.is_writable(name):
            _require_no_other(target, source, name)
            source.owner().seal(name, successor=successor)
    heads = {name: old.head(name) for name in names}
    there = set(new.datasets())
    if all(name in there and _goes_on(target, name, heads[name]) for name in names):
        _forget_noise(source, names)
        return {name: new.head(name).number for name in names}
    for name in names:
        if not _can_move(old, name, successor):
            raise ReadOnly(name, "is not sealed for this ledger: it is a copy, or went elsewhere")
    with old.snapshot() as connection:
        carried = {name: pack(connection, name) for name in names}
    seals = {head.hash for head in heads.values()}
    moved = import_lines(target, export_lines(old, names[0]), carried, take_over=seals)
    _forget_noise(source, names)
    return moved


def _forget_noise(source: Ledger, names: tuple[str, ...]) -> None:
    """Where a book left, nothing of its conversations can be answered or undone any more."""
    for name in names:
        source.book.store.write(partial(forget_noise, dataset=name))


def _can_move(reader: Reader, name: str, successor: str) -> bool:
    """A book that goes on here, or was sealed for this successor."""
    head = reader.head(name)
    sealed = isinstance(head.fact, Seal) and head.fact.successor == successor
    return sealed or reader.is_writable(name)


def _require_no_other(target: Ledger, source: Ledger, name: str) -> None:
    """What is in the way in the target is found before anything is sealed."""
    new, old = target.reader(), source.reader()
    if name in new.datasets():
        same = new.entry(name, 1).hash == old.entry(name, 1).hash
        if new.is_writable(name) or not same:
            raise AlreadyThere(f"dataset {name} exists in the ledger that it should move to")
    with new.snapshot() as connection:
        others = all_declared(connection)
    with old.snapshot() as connection:
        declared = all_declared(connection)[name]
    family = tuple(sorted(other for other in old.beside(name) if other in others))
    require_place(others, replace(declared, beside=family))


def _goes_on(target: Ledger, name: str, seal: Entry) -> bool:
    """Whether the target has taken over after this seal."""
    new = target.reader()
    seals = (e.fact.seal for e in new.entries(name, Resume.kind) if isinstance(e.fact, Resume))
    return seal.hash in seals
