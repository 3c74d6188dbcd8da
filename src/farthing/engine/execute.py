"""Reserve, run, close. The only place that does any of them, for one question or for many.

Conversations, which are paid for before anything is asked, are opened and asked in `conversation`.

Everything that can be refused was refused before. Farthings are reserved first; a failure after
that leaves them spent, because that something failed may depend on the data.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from secrets import token_hex

from farthing.canonical import digest
from farthing.composition.tariffs.tariff import Price, Tariff
from farthing.engine.answer import Answer, spending_of
from farthing.engine.context import Context, Step, record_of
from farthing.engine.contribution_limits import folded, paired
from farthing.engine.errors import ChargeMismatch, EngineFailure, Interrupted, PaidInPart
from farthing.engine.purchase import items_together, pays
from farthing.engine.show.captions import Names
from farthing.errors import FarthingError, InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import RegisteredBatch, Reservation, RowsChanged, Terms, Use
from farthing.ledger.registered_lists import Registered
from farthing.mechanisms import Release
from farthing.mechanisms.protocol import Interval, joint_level

log = logging.getLogger("farthing.engine")


def execute(
    context: Context, steps: Mapping[str, Step], terms: Terms, *, registered: str | None = None
) -> dict[str, Answer]:
    """The release of every step: all of them or none. Paid from the purse, under the terms that
    the steps were planned with, or from the list registered under this name."""
    analyst = context.analyst
    context.require_payable()
    if context.now().about.version != context.about.version:  # or the session was shut
        raise RowsChanged(context.about.name)
    for step in steps.values():
        step.charge()  # the statement is written, its limits and the price compared; or unpaid
    question = record_of(context, {key: step.purchase for key, step in steps.items()})
    items = items_together(step.purchase.items for step in steps.values())
    if registered is not None:
        _require_registered(analyst.registered(registered), registered, steps)
    price = Price(0) if registered else terms.tariff.price_of(items)
    with context.source.ready():  # or refused unpaid; whoever waits for the engine waits here
        context.begins()
        with spent_if_interrupted(price, at_most=True, listed=registered):
            if registered is None:
                held = analyst.reserve(items, question=question, under=terms.account)
            else:
                held = analyst.reserve_list(registered, question=question)
        with spent_if_interrupted(price, listed=registered):
            answers, used = _answers(context, steps, terms, held, registered)
    with spent_if_interrupted(price, listed=registered), _abandoned_if_it_fails(context, held):
        context.on_the_clock()  # or cancelled before it strikes
    with spent_if_interrupted(price, at_most=True, listed=registered):
        return _closed(context, steps, held, answers, used if registered is None else None)


@contextmanager
def spent_if_interrupted(
    price: Price, *, at_most: bool = False, listed: str | None = None
) -> Iterator[None]:
    """An interrupt inside says that this price is spent, besides what was spent inside."""
    try:
        yield
    except Interrupted as inner:
        unsure = at_most or inner.at_most
        raise Interrupted(price + inner.price, at_most=unsure, listed=inner.listed) from None
    except KeyboardInterrupt:
        if price == Price(0) and listed is None:
            raise
        raise Interrupted(price, at_most=at_most, listed=listed) from None


@contextmanager
def paid_before(price: Price) -> Iterator[None]:
    """A refusal or an interrupt inside says that this price was paid before."""
    try:
        with spent_if_interrupted(price):
            yield
    except EngineFailure:
        raise  # it was paid for too
    except FarthingError as error:
        if price == Price(0):
            raise
        raise PaidInPart(price) from error


def _answers(
    context: Context,
    steps: Mapping[str, Step],
    terms: Terms,
    held: Reservation,
    registered: str | None,
) -> tuple[dict[str, Answer], dict[str, int]]:
    """What was reserved is run: the answers, and the items that they show were used."""
    answers: dict[str, Answer] = {}
    totals: dict[str, Interval | None] = {}
    used: Counter[str] = Counter(dict.fromkeys(held.items, 0))
    with _abandoned_if_it_fails(context, held):
        _check_charge(steps, held, terms.tariff, registered)
        for key, step in steps.items():
            release, spent = _release(context, step)
            paid = {name: times for name, times in spent.items() if times > 0 and not registered}
            price = terms.tariff.price_of(paid)
            answers[key] = _answer(context, step, release, price, spent)
            if key in paired(steps):
                totals[key] = step.mechanism.total(release, joint_level(context.confidence, 2))
            used.update(spent)
    return folded(answers, totals), dict(used)


@contextmanager
def _abandoned_if_it_fails(context: Context, held: Reservation) -> Iterator[None]:
    """Nothing is released, and what was reserved stays spent."""
    try:
        yield
    except BaseException as error:
        context.analyst.abandon(held, reason=type(error).__name__)
        raise


def _closed(
    context: Context,
    steps: Mapping[str, Step],
    held: Reservation,
    answers: Mapping[str, Answer],
    used: Mapping[str, int] | None,
) -> dict[str, Answer]:
    """The answers, once the ledger has them."""
    record = {key: answer.to_json() for key, answer in answers.items()}
    closed = context.analyst.close(
        held,
        digest(record),
        used=used,
        use=_use(steps),
        release=record if context.kept else None,
    )
    entry, after = closed.entry if context.kept else None, closed.after
    left = Price(0) if after is None else after.remaining  # without a purse a list was run
    answers = {key: replace(one, entry=entry, remaining=left) for key, one in answers.items()}
    if after is None or used is None:
        return answers
    whole = sum((answer.price for answer in answers.values()), Price(0))  # the rest came back
    spending = spending_of(after, whole, paid=True)
    return {
        key: replace(answer, spending=spending.of_part(answer.price, whole))
        for key, answer in answers.items()
    }


def _require_registered(listed: Registered, name: str, steps: Mapping[str, Step]) -> None:
    """A registered list is exactly that list."""
    asked = {step.purchase.listed_as(key): step.mechanism.guarantees for key, step in steps.items()}
    if not isinstance(listed, RegisteredBatch) or dict(listed.queries) != asked:
        raise InvalidInput(f"this batch is not the one that was registered as {name}")


def _check_charge(
    steps: Mapping[str, Step], held: Reservation, tariff: Tariff, registered: str | None
) -> None:
    """What was reserved is what the mechanisms themselves cost, item by item and in farthings."""
    charge = items_together(step.charge() for step in steps.values())
    if registered is not None:
        return
    for step in steps.values():
        for name, guarantee in step.purchase.guarantees.items():
            if name not in tariff.items or not pays(tariff.items[name][0], guarantee):
                raise ChargeMismatch(f"{name} is not sold under the tariff that was charged")
    if charge != dict(held.items) or tariff.price_of(charge) != held.price:
        raise ChargeMismatch(f"the mechanisms cost {charge}, but {held.items} was reserved")


def _release(context: Context, step: Step) -> tuple[Release, dict[str, int]]:
    """Run statement and mechanism: the release, and the items that it shows were used."""
    files = context.source.unchanged()
    state = None if files is None else (context.about.version, files)
    rows = context.recent.rows(step.statement, state, context.source.run)
    found: tuple[Release, dict[str, int]] | None = None
    try:
        release = step.mechanism.run(step.purchase.query.data(rows))
        found = release, step.purchase.charge(step.mechanism.guarantees_for(release))
    except Exception:
        log.exception("the mechanism failed")  # what it says may depend on the rows
    if found is None:  # out here, so that nothing of the failure hangs on to the error
        raise EngineFailure
    log.info("released a %s on %s for %s", step.purchase.query.kind, context.about.name, found[1])
    return found


def _answer(
    context: Context, step: Step, release: Release, price: Price, used: Mapping[str, int]
) -> Answer:
    query, confidence = step.purchase.query, context.confidence
    schema = context.schema_for(query)
    release = query.in_order(release, schema)
    expected = query.expect(step.mechanism, confidence)
    result = query.result(release, expected)
    errors = query.errors(step.mechanism, release, confidence)
    if isinstance(errors, tuple):
        result = replace(result, half_width=None, intervals=errors)
    elif errors is not None:
        result = replace(result, half_width=errors)
    return Answer(
        query=query,
        labels=result.labels,
        counts=result.counts,
        half_width=result.half_width,
        confidence=confidence,
        stopped=release.stopped,
        price=price,
        used=used,
        remaining=Price(0),  # known once the entry is closed
        intervals=result.intervals,
        units=query.units_in(step.mechanism, release, confidence),
        unit=context.about.unit,
        caption=query.caption(context.about.unit, schema.declared),
        shown_from=expected.shown_from,
        guarantees={role: format_guarantee(one) for role, one in step.purchase.paid.items()},
        drawn=token_hex(8),
    )


def _use(steps: Mapping[str, Step]) -> Use:
    """What was run, in words that the ledger can keep without knowing what a query is."""
    words = [step.purchase.query.words(Names()) for step in steps.values()]
    uses = [pair for step in steps.values() for pair in step.mechanism.guarantees]
    parts = sorted({one.contribution for one in words})
    return Use(
        what=words[0].described if len(words) == 1 else f"batch of {len(words)}",
        contribution=parts[0] if len(parts) == 1 else "as each of its questions says",
        guarantees=tuple((format_guarantee(guarantee), times) for guarantee, times in uses),
    )
