"""The book: what it says, whether it is right, and how it is settled, copied and moved."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from farthing.composition.accounts.account_profiles import whole_by_addition, whole_by_moments
from farthing.composition.tariffs.verification import certificate_from_json
from farthing.engine.context import record_in_words
from farthing.engine.desk.operations import ABSENT, Given, Office, operation
from farthing.errors import FarthingError, InvalidInput
from farthing.ledger import Ledger, NotInLedger, export_lines, markdown
from farthing.ledger import back_up as back_up_to
from farthing.ledger import history as history_of
from farthing.ledger import move as move_to
from farthing.ledger import odometer as odometer_of
from farthing.ledger import restore as restore_from
from farthing.ledger import statement as statement_of
from farthing.ledger import verify as verified_books
from farthing.numerics.rounding import shown_up
from farthing.wording import ALL_SOLD, guess_words

#: δ at which the other bounds are drawn beside the certified profile.
DRAWN = tuple(10.0**-k for k in range(1, 13))
#: Points of a profile that are drawn, about.
POINTS = 200
#: Characters of a question that is shown as it was kept.
LONGEST_CAPTION = 80
#: How a file of SQLite begins.
_SQLITE = b"SQLite format 3\0"

#: The δ of a statement, and the file of a copy.
_DELTA = {"delta": Given("The δ of the statement.", label="δ")}


@operation("GET /datasets/{dataset}/statement", fields=_DELTA, slow=True)
def statement(office: Office, dataset: str, delta: float = 1e-6) -> dict[str, Any]:
    """What the deployment says about itself, as data and as a page. May take seconds."""
    data = statement_of(office.reader, dataset, delta=delta)
    return {"statement": data, "markdown": markdown(data)}


@operation("POST /datasets/{dataset}/verify", under="verified", slow=True, query=True)
def verify(office: Office, dataset: str, prove: bool = False) -> list[dict[str, Any]]:
    """Walk the chain and play every entry again; keep `head` elsewhere, as a witness."""
    return [asdict(found) for found in verified_books(office.reader, dataset, prove=prove)]


@operation(
    "GET /datasets/{dataset}/history",
    under="asked",
    fields={
        "analyst": Given("Only this analyst's."),
        "values": Given("What was told.", sent=ABSENT),
    },
)
def history(
    office: Office,
    dataset: str,
    analyst: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    values: bool = False,
) -> list[dict[str, Any]]:
    """Who asked what, when, for how much, and of which version of the rows."""
    return [
        {
            **asked.to_json(),
            "caption": _caption(asked.question),
            **({"release": asked.release} if values else {}),
        }
        for asked in history_of(office.reader, dataset, analyst, since=since, until=until)
    ]


def _caption(question: Any) -> str:
    """As the engine titles it; what was asked without the engine as it was kept."""
    if question is None:
        return "not stated"
    try:
        return record_in_words(question)
    except FarthingError:
        if isinstance(question, dict) and isinstance(question.get("watch"), dict):
            return f"A conversation: {question['watch'].get('kind')}"
        return json.dumps(question, ensure_ascii=False)[:LONGEST_CAPTION]


@operation("GET /datasets/{dataset}/budget-over-time")
def budget_over_time(office: Office, dataset: str) -> dict[str, Any]:
    """What each analyst had spent after each question, and the cap of each account."""
    reader = office.reader
    spent: dict[str, int] = defaultdict(int)
    lines: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for asked in history_of(reader, dataset):
        spent[asked.analyst] += asked.price.farthings
        lines[asked.analyst].append((asked.time, spent[asked.analyst]))
    return {
        "analysts": [{"analyst": name, "points": points} for name, points in lines.items()],
        "granted": [
            {"analyst": purse.analyst, "account": purse.account, "farthings": purse.farthings}
            for purse in reader.purses(dataset)
        ],
        "caps": [
            {"account": one.name, "farthings": one.farthings, "spent": one.farthings_spent}
            for one in reader.accounts(dataset)
            if one.mode == "tariff"
        ],
    }


def _odometer_words(answer: dict[str, Any]) -> str:
    who = answer["analysts"]
    spent = f"{answer['farthings_spent']} of {answer['cap']} farthings spent"
    return (
        f"{'all analysts together' if who is None else ', '.join(who)}: "
        f"ε ≤ {shown_up(answer['epsilon'])} at δ = {answer['delta']}, {spent}"
        + (" by everybody, whose spending can show in refusals" if answer["shared"] else "")
        + f"\nby the {answer['theorem']}"
        + ("" if answer["assuming"] is None else f"\nif {answer['assuming']}")
    )


@operation(
    "GET /datasets/{dataset}/odometer",
    command="ledger odometer",
    busy="reading the odometer",
    said=_odometer_words,
    fields={
        **_DELTA,
        "analyst": Given(
            "A coalition; may be repeated. Without it everybody.",
            typed=list[str] | None,
            sent=list[str] | None,
        ),
    },
    slow=True,
)
def odometer(
    office: Office, dataset: str, analyst: Sequence[str] | None = None, delta: float = 1e-6
) -> dict[str, Any]:
    """What has been learned so far, as an (ε, δ) statement that is valid at any moment."""
    return odometer_of(office.reader, dataset, delta=delta, analysts=analyst or None).to_json()


@operation("GET /datasets/{dataset}/profile")
def profile(office: Office, dataset: str) -> dict[str, Any]:
    """The certified δ(ε) of the tariff in force, beside what other bounds would say."""
    signed = certificate_from_json(certificate(office, dataset))
    tariff = signed.tariff
    moments = [(whole_by_moments(tariff, delta), delta) for delta in DRAWN]
    added = whole_by_addition(tariff)
    points = [x for x, _ in signed.profile if x >= 0]
    curves = {
        "certified": [[x, signed.delta_at(x)] for x in points[:: max(1, len(points) // POINTS)]],
        "zero-concentrated DP": [[x, delta] for x, delta in moments if x is not None],
        "adding up": [] if added == float("inf") else [[added, 0.0]],
    }
    return {
        "farthings": tariff.farthings,
        "claims": [
            {"delta": delta, "lower": bracket.lower, "upper": bracket.upper}
            for delta, bracket in signed.epsilons
        ],
        "theorem": signed.theorem,
        "meaning": guess_words(signed.guess, office.reader.dataset(dataset).unit, ALL_SOLD),
        "curves": [{"name": name, "points": drawn} for name, drawn in curves.items()],
    }


@operation("GET /datasets/{dataset}/certificate")
def certificate(office: Office, dataset: str, account: str | None = None) -> dict[str, Any]:
    """The certificate of a tariff, as it was signed."""
    reader = office.reader
    signed = [
        one
        for one in reader.accounts(dataset)
        if one.mode == "tariff" and (one.open if account is None else one.name == account)
    ]
    if not signed:
        what = "in force" if account is None else f"called {account!r:.60}"
        raise NotInLedger(f"{dataset} has no tariff {what}; `farthing ledger show` lists them")
    return dict(reader.document(dataset, signed[-1].number))


@operation(
    "POST /datasets/{dataset}/abandon",
    command="owner abandon",
    said="entry {abandoned} is abandoned; what it reserved stays spent",
)
def abandon(office: Office, dataset: str, entry: int, reason: str) -> dict[str, Any]:
    """Settle a reservation that a crash left open. Nothing comes back."""
    held = [one for one in office.reader.open_reservations(dataset) if one.entry == entry]
    if not held:
        raise InvalidInput(f"entry {entry} of {dataset} is not an open reservation")
    settled = office.owner.abandon(held[0], reason=reason)
    return {"dataset": dataset, "abandoned": entry, "entry": settled.number}


@operation(
    "POST /datasets/{dataset}/conversations/{identity}/end",
    command="owner end-conversation",
    said="{ended} has ended; what was paid for it stays spent",
)
def end_conversation(
    office: Office, dataset: str, identity: str, reason: str = "ended by the owner"
) -> dict[str, Any]:
    """End a conversation, whoever opened it; `ledger show --json` lists them.

    What was paid for it stays spent.
    """
    office.owner.end_conversation(dataset, identity, reason=reason)
    return {"dataset": dataset, "ended": identity}


@operation(
    command="owner seal",
    said="{dataset} is sealed; it goes on in the ledger {successor}\n"
    "(there: farthing ledger import FILE --take-over {seal})",
)
def seal(office: Office, dataset: str, successor: str) -> dict[str, Any]:
    """End a book here, for good: only that ledger can go on with it. `move` does all of it."""
    entry = office.owner.seal(dataset, successor=successor)
    return {"dataset": dataset, "successor": successor, "seal": entry.hash}


@operation(
    command="owner move",
    busy="moving",
    under="moved",
    said=lambda answer: "\n".join(f"{n}: {size} entries" for n, size in answer["moved"].items()),
    fields={"dataset": Given("Only this one.", argument="[DATASET]")},
)
def move(office: Office, target: str, dataset: str | None = None) -> dict[str, int]:
    """Move a dataset, or all, to another ledger: sealed here, sold from there. Safe to repeat."""
    with Ledger.open(target) as there:
        return move_to(office.ledger, there, dataset)


@operation(command="owner upgrade", said="the ledger is up to date", creates=True)
def upgrade(_: Office) -> dict[str, Any]:
    """Create the ledger or bring its schema up to date."""
    return {"upgraded": True}


def _copied_words(answer: dict[str, Any]) -> str:
    heads = (
        f"{d['dataset']}: {d['entries']} entries, head {d['head']}" for d in answer["datasets"]
    )
    return "\n".join([f"written to {answer['file']}", *heads])


@operation(command="owner backup", said=_copied_words, busy="backing up")
def back_up(office: Office, file: Path) -> dict[str, Any]:
    """Write a copy of every book to a file, flushed and checked; people may go on meanwhile."""
    walks = back_up_to(office.reader, file)
    heads = [
        {"dataset": name, "entries": walk.number, "head": walk.hash} for name, walk in walks.items()
    ]
    return {"file": os.fspath(file), "datasets": heads}


def _restored_words(answer: dict[str, Any]) -> str:
    restored = answer["restored"].items()
    return "\n".join(
        [
            *(f"{name}: {count} entries; its accounts are closed" for name, count in restored),
            "everything in them counts as spent; sign a tariff for what is still to be given",
            "datasets and accounts that were opened after the copy was made are not in it",
        ]
    )


def _readable(copy: str) -> str:
    """The place of a copy that can be read: checked before a new ledger is made."""
    try:
        if "://" not in copy:
            Path(copy).open("rb").close()
    except OSError as error:
        raise InvalidInput(f"{copy} cannot be read: {error}") from None
    return copy


def _lines_of(copy: str) -> Iterator[str]:
    """The lines of an export: of the file, or of the ledger that the file is."""
    if "://" in copy or _is_ledger(Path(copy)):
        with Ledger.open(copy, upgrade=False) as other:
            yield from export_lines(other.reader())
        return
    try:
        with Path(copy).open(encoding="utf-8", newline="\n") as lines:
            yield from lines
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{copy} cannot be read: {error}") from None


@operation(
    command="owner restore",
    busy="restoring",
    under="restored",
    said=_restored_words,
    fields={
        "copy": Given(
            "A file of `owner backup`, or a copy of a ledger's own file.",
            argument="COPY",
            read=_readable,
        )
    },
    creates=True,
)
def restore(office: Office, copy: str) -> dict[str, int]:
    """Go on from a copy when the ledger is lost, in another one.

    Nobody knows what was spent after the copy was made, so every account in it counts as spent
    in full and is closed. Sign a tariff, and grant, for what is still to be given away.
    """
    return restore_from(office.ledger, _lines_of(_readable(copy)))


def _is_ledger(file: Path) -> bool:
    with file.open("rb") as start:
        return start.read(len(_SQLITE)) == _SQLITE
