"""A budget in two numbers: whether it is the one in force, and where its ledger is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from farthing.composition.tariffs.prices import EpsilonDelta, is_ladder_for
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.ledger import Ledger
from farthing.ledger.declared_data import overlap, places_in

#: What a ledger beside some data is called.
SUFFIX = ".farthing.db"
#: The variable of the environment that names a ledger for everything that is not told one.
VARIABLE = "FARTHING_LEDGER"
_FILE = "file:"


def require_in_force(budget: EpsilonDelta, ledger: Ledger, dataset: str, account: int) -> None:
    """Opening signs nothing: the same budget may be named again, another one is refused."""
    reader = ledger.reader()
    signed = certificate_from_json(reader.document(dataset, account))
    if not is_ladder_for(signed, epsilon=budget.epsilon, delta=budget.delta):
        stated = ", ".join(f"ε ≤ {b.upper:.4g} at δ = {d:g}" for d, b in signed.epsilons)
        raise InvalidInput(
            f"the budget of {dataset} was signed before, for {stated}; it cannot become "
            f"epsilon = {budget.epsilon:g} at delta = {budget.delta:g} by opening it: leave "
            "epsilon and delta out, or let the owner sign another tariff"
        )


def require_no_other_budget(source: Source, ledger: Ledger) -> None:
    """No ledger that is kept near the data has it, unless this one knows it: a book may have moved.

    Of what this ledger knows it says itself what may be added.
    """
    identity = ledger.reader().identity()
    for place in () if source.location is None else places_in(source.location):
        for path in () if ledger.datasets_at(place) else _ledgers_near(place):
            with Ledger.open(path, upgrade=False) as other:
                reader = other.reader()
                if reader.identity() == identity:
                    continue
                for name in reader.datasets():
                    if any(overlap(known, place) for known in reader.places(name)):
                        raise InvalidInput(
                            f"{place} has a budget already, in {path} as {name}: a budget belongs "
                            "to the data; use that ledger, or the one in which its book goes on, "
                            "or move it with `farthing owner move`"
                        )


def _ledgers_near(place: str) -> Iterator[Path]:
    """Those beside a file, beside the folders that hold it, and within it if it is a folder."""
    if not place.startswith(_FILE):
        return
    path = _path_of(place)
    beside = (_beside(one) for one in (path, *path.parents) if one.name)
    yield from (one for one in beside if one.is_file())
    if path.is_dir():
        yield from path.rglob(f"*{SUFFIX}")


def _path_of(place: str) -> Path:
    return Path(place.removeprefix(_FILE).partition("#")[0])


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}{SUFFIX}")


def ledger_beside(source: Source, name: str | None) -> Path:
    """Where the ledger of some data is kept if nobody says: beside the file, or here."""
    if source.location is None:
        return Path.cwd() / f"{name or source.name}{SUFFIX}"
    if len(places_in(source.location)) > 1:
        raise InvalidInput(
            "several tables have no ledger beside them: say where it is, ledger=…; it must be the "
            "one that would know each of them by itself, so that no row has two budgets"
        )
    if not source.location.startswith(_FILE):
        raise InvalidInput(f"{source.name} is no file: say where its ledger is, ledger=…")
    return _beside(_path_of(source.location))
