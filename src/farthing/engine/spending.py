"""Everything the engine asks of the ledger, in one place."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farthing.canonical import digest
from farthing.composition.certificate import Certificate, tariff_from_json, tariff_to_json
from farthing.composition.tariff import Price, Tariff
from farthing.errors import InvalidInput
from farthing.ledger.book import Ledger
from farthing.ledger.errors import NotInLedger
from farthing.ledger.facts import BATCH, Dataset, Reservation
from farthing.ledger.lists import Batch, from_document
from farthing.ledger.reading import Terms


class Spending:
    """One analyst's way into the budget of one dataset."""

    def __init__(self, ledger: Ledger, dataset: str, analyst: str, *, opened: bool) -> None:
        self.ledger = ledger
        self._opened = opened
        self.dataset = dataset
        self.analyst = analyst
        self._secret: str | None = None

    @property
    def terms(self) -> Terms:
        """The tariff in force, and the number of its account."""
        return self.ledger.in_force(self.dataset)

    @property
    def tariff(self) -> Tariff:
        """The tariff in force."""
        return self.terms.tariff

    def tariff_of(self, held: Reservation) -> Tariff:
        """The tariff that a reservation was made under."""
        number = self.ledger.entry(self.dataset, held.entry).fact["account"]
        return self.ledger.tariff(self.dataset, number)

    @property
    def secret(self) -> str:
        """The key of the digest that picks which keys of a unit are kept.

        Made from the hash of the dataset's first entry, which holds random bits and never
        changes: the same for everyone who can read the ledger, unknown to analysts who cannot.
        """
        if self._secret is None:
            first = self.ledger.entry(self.dataset, 1).hash
            text = f"farthing contribution order {first}"
            self._secret = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._secret

    def remaining(self) -> Price:
        """What the analyst can still spend."""
        return self.ledger.remaining(self.dataset, self.analyst)

    def earlier(self, question: Any) -> dict[str, Any] | None:
        """The release this analyst got for the same question before."""
        found = self.ledger.find_release(self.dataset, question, analyst=self.analyst)
        return None if found is None else dict(found.fact["release"])

    def reserve(self, items: Mapping[str, int], question: Any, *, under: int) -> Reservation:
        """Set farthings aside under the tariff planned with, or raise and change nothing."""
        return self.ledger.reserve(
            self.dataset, self.analyst, items, question=question, under=under
        )

    def reserve_registered(self, name: str, question: Any) -> Reservation:
        """Take a registered batch, whole."""
        return self.ledger.reserve(self.dataset, self.analyst, question=question, account=name)

    def register(self, name: str, queries: Mapping[str, Any]) -> None:
        """An account for a batch that is fixed in advance. The owner's decision."""
        self.ledger.register(self.dataset, name, Batch(queries), analyst=self.analyst)

    def registered(self, name: str) -> dict[str, Any]:
        """The queries of a registered batch, each with its guarantees."""
        accounts = self.ledger.accounts(self.dataset)
        account = next((a for a in accounts if a.name == name and a.mode == BATCH), None)
        if account is None:
            raise InvalidInput(f"no batch is registered as {name!r:.60}")
        listed = from_document(self.ledger.document(self.dataset, account.number))
        assert isinstance(listed, Batch)
        return {key: tuple(items) for key, items in listed.queries.items()}

    def close(
        self, held: Reservation, release: Any, *, used: Mapping[str, int] | None, keep: bool
    ) -> None:
        """The release went out. With `keep` it can be found again by its question."""
        kept = release if keep else None
        self.ledger.close(held, digest(release), used=used, release=kept)

    def abandon(self, held: Reservation, reason: str) -> None:
        """Nothing was released. What was reserved stays spent."""
        self.ledger.abandon(held, reason=reason)

    def shut(self) -> None:
        """Give the ledger back, if it was opened for this."""
        if self._opened:
            self.ledger.shut()


def open_spending(
    ledger: Ledger | str | os.PathLike[str],
    *,
    dataset: str,
    unit: str,
    owner: str,
    analyst: str,
    tariff: Tariff | Certificate | str | os.PathLike[str] | None,
    farthings: int | None,
    delta_units: int | None,
) -> Spending:
    """The ledger, with dataset, tariff and purse in place.

    What is there already stays: a tariff is signed only if none is in force, and a purse is
    granted only if the analyst has none, so opening the same data again adds nothing.
    """
    opened = not isinstance(ledger, Ledger)
    # only who brings a tariff starts a ledger: a slip in its name must not leave a file behind
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger, upgrade=tariff is not None)
    try:
        _add(book, dataset, unit=unit, owner=owner, new=tariff is not None)
        if tariff is not None:
            _sign(book, dataset, tariff)
        spending = Spending(book, dataset, analyst, opened=opened)
        _grant(spending, farthings, delta_units)
    except BaseException:
        if opened:
            book.shut()
        raise
    return spending


def _add(book: Ledger, dataset: str, *, unit: str, owner: str, new: bool) -> None:
    if dataset in book.datasets():
        known = book.dataset(dataset).unit
        if known != unit:
            raise InvalidInput(f"the unit of {dataset} in the ledger is {known}, got {unit}")
        return
    if not new:
        raise InvalidInput(
            f"{dataset} is not in the ledger; give a tariff, or add the dataset first"
        )
    book.add(Dataset(dataset, unit=unit, owner=owner))


def _sign(book: Ledger, dataset: str, given: Tariff | Certificate | str | os.PathLike[str]) -> None:
    wanted = _tariff(given)
    try:
        current = book.tariff(dataset)
    except NotInLedger:
        book.sign(dataset, given if isinstance(given, Certificate) else wanted.certify())
        return
    if tariff_to_json(current) != tariff_to_json(wanted):
        raise InvalidInput(
            f"another tariff is in force for {dataset}; leave tariff out, or sign a new one with "
            "the ledger"
        )


def _grant(spending: Spending, farthings: int | None, delta_units: int | None) -> None:
    try:
        spending.remaining()
    except NotInLedger:
        if farthings is None:
            raise InvalidInput(
                f"{spending.analyst} has no purse for {spending.dataset}; give farthings to grant"
            ) from None
        units = spending.tariff.delta_units if delta_units is None else delta_units
        spending.ledger.grant(
            spending.dataset, spending.analyst, farthings=farthings, delta_units=units
        )


def _tariff(given: Tariff | Certificate | str | os.PathLike[str]) -> Tariff:
    if isinstance(given, Tariff):
        return given
    if isinstance(given, Certificate):
        return given.tariff
    try:
        data = tomllib.loads(Path(given).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{given} is not a readable tariff: {error}") from None
    return tariff_from_json(data)
