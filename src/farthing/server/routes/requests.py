"""From a body to a question, and from an answer to a body. What an analyst is told is made here."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from fastapi import Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from farthing.canonical import canonical, digest
from farthing.composition.tariffs.tariff import Price
from farthing.engine import Answer, Answers, Batch, LocalBackend, Plan, Question, Session
from farthing.engine.context import Context, StatementCache, record_in_words
from farthing.engine.plan import ConversationPlan
from farthing.errors import FarthingError, InvalidInput
from farthing.guarantees.notation import format_guarantee
from farthing.ledger import DoesNotFit, KeptRelease, Purse, ReleaseSummary
from farthing.ledger.errors import Damaged, Unavailable, WrongSchema
from farthing.server.callers import AnalystCaller, grants_of
from farthing.server.problems import Refused, does_not_fit, note, nothing_here
from farthing.server.service import (
    LARGEST_BYTES,
    CachedAnalyst,
    Circumstances,
    ServedAnalyst,
    Service,
)
from farthing.wording import ALL_SOLD, guess_words

#: Queries in one batch at most: planning them must not hold up others.
MOST_IN_A_BATCH = 500

#: Bytes of each half of the name of a release.
_HALF = 8

_COUNT: dict[str, Any] = {"kind": "count", "where": "country == 'NO'"}
_TOP: dict[str, Any] = {"kind": "top_k", "by": "article", "k": 10, "counts": True}


class PriceBody(BaseModel):
    """A price, as a plan says it."""

    model_config = ConfigDict(extra="forbid")

    farthings: Annotated[int, Field(ge=0)]
    delta_units: Annotated[int, Field(ge=0)] = 0


PlannedPrice = Annotated[
    PriceBody | None, Field(description="What the plan said: refused if it costs more by now.")
]


class AskBody(BaseModel):
    """One of `query`, `sql` and `batch`; how good it should be, if that chooses the items."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"query": _COUNT}, {"query": _TOP, "half_width": 50}]},
    )

    query: Annotated[dict[str, Any] | None, Field(description="A query as plain data.")] = None
    sql: Annotated[str | None, Field(description="One SELECT.", max_length=20_000)] = None
    batch: Annotated[
        dict[str, dict[str, Any]] | None,
        Field(description="Queries by name, run together.", max_length=MOST_IN_A_BATCH),
    ] = None
    half_width: float | None = None
    tells_apart: float | None = None
    rows: int | None = None


class RunBody(AskBody):
    """The same, and whether it is paid for anew if there is an earlier release."""

    again: bool = False
    registered: Annotated[
        str | None, Field(description="For a batch: the registered list that pays.")
    ] = None
    price: PlannedPrice = None


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One analyst at one dataset, for one request."""

    service: Service
    analyst: ServedAnalyst
    session: Session

    @classmethod
    def of(cls, service: Service, caller: AnalystCaller, dataset: str) -> Inquiry:
        """Refused in the same words if it does not exist and if it is not granted."""
        if grants_of(service.ledger, caller, dataset) is None:
            raise nothing_here()
        return cls.granted(service, caller, dataset)

    @classmethod
    def granted(cls, service: Service, caller: AnalystCaller, dataset: str) -> Inquiry:
        """The same for who was found to have a purse just now."""
        return cls._by(service, ServedAnalyst(service.ledger.book, dataset, caller.name))

    @classmethod
    def for_plan(cls, service: Service, circumstances: Circumstances) -> Inquiry:
        """For what looks at no rows and pays nothing: with terms and purse as they were found."""
        kept = service.remembered.analysts.get(circumstances)
        if kept is None:
            book = service.ledger.book
            kept = CachedAnalyst(book, circumstances.dataset, circumstances.analyst)
            service.remembered.analysts.keep(circumstances, kept)
        return cls._by(service, kept)

    @classmethod
    def _by(cls, service: Service, analyst: ServedAnalyst) -> Inquiry:
        source = service.sources.get(analyst.dataset)
        if source is None:
            raise nothing_here()
        level, clock = service.settings.confidence, service.runner.wait_for_the_clock
        key, begins = (analyst.dataset, analyst.name), service.runner.begins
        recent = service.remembered.statements.setdefault(key, StatementCache())
        context = Context(source, analyst, analyst.about(), level, clock, recent, begins)
        return cls(service, analyst, Session(LocalBackend(context)))

    def question(self, body: AskBody) -> Question | Batch:
        """What is asked."""
        given = [one for one in (body.query, body.sql, body.batch) if one is not None]
        if len(given) != 1:
            raise InvalidInput("one of query, sql and batch must be given")
        if body.sql is not None:
            return self.session.sql(body.sql)
        if body.batch is not None:
            return self.session.batch(body.batch)
        asked = self.session.ask(body.query or {})
        if isinstance(asked, Batch):
            raise InvalidInput("several questions are sent as batch, not as query")
        return asked

    def plan(self, body: AskBody) -> Plan[Any]:
        """The plan."""
        question = self.question(body)
        if isinstance(question, Batch):
            if (body.half_width, body.tells_apart, body.rows) != (None, None, None):
                raise InvalidInput("half_width, tells_apart and rows are for one question")
            return question.plan()
        return question.plan(
            half_width=body.half_width, tells_apart=body.tells_apart, rows=body.rows
        )

    def told(self, answer: Answer | Answers) -> dict[str, Any]:
        """What comes back for a run; `id` names the release that it is, if it is kept as one."""
        if isinstance(answer, Answers):
            entries = {one.entry for one in answer.values()}
            table = {} if answer.view is None else {"table": answer.table.to_json()}
            return {
                "answers": {name: one.told() for name, one in answer.items()},
                **table,
                "id": self.name_of(entries.pop() if len(entries) == 1 else None),
            }
        return {"answer": answer.told(), "id": self.name_of(answer.entry)}

    def name_of(self, entry: int | None) -> str | None:
        """A name for what an entry keeps, which tells nothing and which `entry_of` reads.

        The number of the entry, encrypted by a key that only the service has: a digest of it, and
        the number under a mask that is made from this digest.
        """
        if entry is None:
            return None
        tag = self._keyed([self.analyst.dataset, self.analyst.name, entry])
        return tag.hex() + _masked(entry.to_bytes(_HALF), self._keyed(tag.hex())).hex()

    def entry_of(self, name: str) -> int | None:
        """The entry that has this name for this analyst; None if there is none."""
        if len(name) != 4 * _HALF or not set(name) <= set("0123456789abcdef"):
            return None
        tag, masked = bytes.fromhex(name)[:_HALF], bytes.fromhex(name)[_HALF:]
        entry = int.from_bytes(_masked(masked, self._keyed(tag.hex())))
        return entry if hmac.compare_digest(self.name_of(entry) or "", name) else None

    def _keyed(self, facts: Any) -> bytes:
        key = self.service.access.secret.encode()
        return hmac.new(key, canonical(facts).encode(), hashlib.sha256).digest()[:_HALF]

    def release(self, kept: ReleaseSummary) -> dict[str, Any]:
        """One of the analyst's own releases: never an entry number, never a hash."""
        try:
            asked = record_in_words(kept.question, self.analyst.about())
        except FarthingError:
            asked = "a question"
        queries = {name: one.get("query") for name, one in kept.question.items()}
        found = {
            "id": self.name_of(kept.entry),
            "at": kept.time,
            "asked": asked,
            "query": queries[""] if set(queries) == {""} else None,
            "batch": None if set(queries) == {""} else queries,
            "price": asdict(kept.price),
        }
        return {**found, "release": kept.release} if isinstance(kept, KeptRelease) else found

    def overview(self) -> dict[str, Any]:
        """What an analyst may know of a dataset."""
        about = self.analyst.about()
        columns = () if about.schema is None else about.schema.columns
        certificate = self.analyst.certificate()
        tariff = certificate.tariff
        return {
            "name": about.name,
            "unit": about.unit,
            "columns": [replace(column, lookup=None).to_json() for column in columns],
            "limits": about.limits.to_json(),
            "version": about.version,
            "purse": purse_json(self.analyst.purse()),
            "items": [
                {
                    "name": name,
                    "guarantee": format_guarantee(guarantee),
                    "farthings": price,
                    "delta_units": tariff.price(name).delta_units,
                }
                for name, (guarantee, price) in tariff.items.items()
            ],
            "meaning": guess_words(certificate.guess, about.unit, ALL_SOLD),
            "guarantee": [
                {"epsilon": bracket.upper, "delta": delta}
                for delta, bracket in certificate.epsilons
            ],
        }


def remembered_answer(
    service: Service,
    circumstances: Circumstances,
    asked: Any,
    make: Callable[[], dict[str, Any] | None],
) -> Response | None:
    """What `make` gives, or gave a moment ago; None, and nothing is kept, if it gives None."""
    answers, key = service.remembered.answers, (circumstances, digest(asked))
    kept = answers.get(key)
    if kept is None:
        made = make()
        if made is None:
            return None
        kept = bytes(JSONResponse(made).body)
        if len(kept) <= LARGEST_BYTES:
            answers.keep(key, kept)
    return Response(kept, media_type="application/json")


def require_planned(price: Price, planned: PriceBody | None) -> None:
    """Refused if it costs more than its plan said: another tariff is in force."""
    if planned is None or price.within(Price(planned.farthings, planned.delta_units)):
        return
    raise Refused(409, "tariff_changed", "it costs more now than when it was planned; plan again")


def plan_json(plan: Plan[Any] | ConversationPlan) -> dict[str, Any]:
    """A plan with its lines for people: what is said, and how much."""
    return {**plan.to_json(), "lines": [list(line[:2]) for line in plan.lines()]}


def purse_json(purse: Purse) -> dict[str, Any]:
    """What an analyst sees of a purse: not the account, which counts others' too."""
    return {
        "farthings": purse.farthings,
        "farthings_spent": purse.farthings_spent,
        "delta_units": purse.delta_units,
        "delta_units_spent": purse.delta_units_spent,
        "left": asdict(purse.left()),
        "renewal": purse.renewal,
        "month": purse.month,
        "open": purse.open,
    }


def on_time(inquiry: Inquiry, go: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `go` gives, which waited for the clock before the ledger heard of it; what it raises
    waits here."""
    try:
        return go()
    except Exception as error:
        refused = _refused(inquiry, error)
    inquiry.service.runner.wait_for_the_clock()
    raise refused


def _refused(inquiry: Inquiry, error: Exception) -> Exception:
    """As its analyst may hear it: a refusal tells of the own purse only.

    A ledger that fails while something is paid for may have written it down all the same: that is
    no "try again later", or a request that is sent again could be charged twice.
    """
    if isinstance(error, DoesNotFit) and isinstance(error.requested, Price):
        return does_not_fit(error.requested, inquiry.analyst.remaining())
    if isinstance(error, Damaged | Unavailable | WrongSchema):
        note(error)
        words = "it may be spent, and what was released is among your releases"
        return Refused(500, "unsure", f"the ledger failed while this was paid for; {words}")
    return error


def _masked(data: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, mask, strict=True))
