"""A budget in two numbers: what is signed for an (ε, δ), and where its ledger is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from farthing.composition.tariffs.certificate import Certificate
from farthing.composition.tariffs.ladder import is_ladder_for, ladder
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput
from farthing.ledger import Ledger
from farthing.ledger.locations import places_in

#: What a ledger beside some data is called.
SUFFIX = ".farthing.db"
#: The variable of the environment that names a ledger for everything that is not told one.
VARIABLE = "FARTHING_LEDGER"
_FILE = "file:"


@dataclass(frozen=True, slots=True)
class EpsilonDelta:
    """What all releases together may cost a unit: a ladder of items is made from it and certified.

    δ has no default. It is the chance that the guarantee fails for a unit, so it belongs well
    below one over the number of units, which nobody but the owner knows.
    """

    epsilon: float
    delta: float

    @staticmethod
    def of(epsilon: float | None, delta: float | None) -> EpsilonDelta | None:
        """Both or neither."""
        if epsilon is not None and delta is not None:
            return EpsilonDelta(epsilon, delta)
        if epsilon is None and delta is None:
            return None
        raise InvalidInput(
            "epsilon and delta go together: delta is the chance that the guarantee fails, well "
            "below one over the number of units, such as delta=1e-6"
        )

    def certificate(self) -> Certificate:
        """The ladder, proved."""
        return ladder(epsilon=self.epsilon, delta=self.delta)

    def require_in_force(self, ledger: Ledger, dataset: str, account: int) -> None:
        """Opening signs nothing: the same budget may be named again, another one is refused."""
        reader = ledger.reader()
        opened = next(one.entry for one in reader.accounts(dataset) if one.number == account)
        signed = certificate_from_json(reader.entry(dataset, opened).fact["certificate"])
        if not is_ladder_for(signed, epsilon=self.epsilon, delta=self.delta):
            stated = ", ".join(f"ε ≤ {b.upper:.4g} at δ = {d:g}" for d, b in signed.epsilons)
            raise InvalidInput(
                f"the budget of {dataset} was signed before, for {stated}; it cannot become "
                f"epsilon = {self.epsilon:g} at delta = {self.delta:g} by opening it: leave "
                "epsilon and delta out, or let the owner sign another tariff"
            )


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
    path = Path(source.location.removeprefix(_FILE).partition("#")[0])
    return path.with_name(f"{path.stem}{SUFFIX}")
