"""What an analyst holds, wherever the data is: the same methods here and over HTTP."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import PastRelease
from farthing.engine.any_question import AboutData, AnyBatch, AnyQuestion
from farthing.engine.kinds import BATCH, Kinds, query_from
from farthing.engine.kinds.base import Query
from farthing.engine.sql_questions.reading import queries_in
from farthing.engine.watch_kinds import GuessWatch, ThresholdWatch, WatchKind
from farthing.errors import InvalidInput
from farthing.ledger import OpenedConversation, Purse
from farthing.schema import Schema

Asked = TypeVar("Asked", bound=AnyQuestion[Any])
AskedTogether = TypeVar("AskedTogether", bound=AnyBatch[Any])
Watched = TypeVar("Watched")


class AnySession(Kinds[Asked], Generic[Asked, AskedTogether, Watched]):
    """One dataset, one unit of privacy, one analyst's purse.

    How questions, batches and watches are made is said by who holds the data.
    """

    _context: AboutData

    @property
    def name(self) -> str:
        """The dataset's name in the ledger."""
        return self._context.about.name

    @property
    def schema(self) -> Schema:
        """The columns that were declared when this was opened; nothing else exists here."""
        return self._context.about.declared_schema

    def ask(self, query: Query | Mapping[str, Any]) -> Asked | AskedTogether:
        """A question from a query, or from its plain data; a batch from the data of one."""
        if isinstance(query, Mapping) and query.get("kind") == BATCH:
            queries = query.get("queries")
            return self.batch(queries if isinstance(queries, Mapping) else {})
        return self.question(query_from(query))

    def sql(self, text: str, **options: Any) -> Asked | AskedTogether:
        """What one SELECT asks: a question, or a batch if it has several functions.

        The text is read into the same questions as everything here and never passed on; a clause
        that none of them has is refused. `options` are fields that SQL has no words for, such as
        contribution_limit; OPTIONS (contribution_limit = 3) at the end of the text says the same.
        """
        asked = queries_in(text, self._context.about, options)
        if len(asked) > 1:
            return self.batch(asked)
        return self.question(*asked.values())

    def batch(self, questions: Mapping[str, Any]) -> AskedTogether:
        """Several questions, queries or plain data, fixed in advance and run together."""
        queries = {}
        for name, one in questions.items():
            if not name:
                raise InvalidInput("every question of a batch must have a name, got an empty one")
            if isinstance(one, AnyQuestion) and not one.is_asked_of(self._context):
                raise InvalidInput("every question of a batch must be asked of the same data")
            queries[name] = one.query if isinstance(one, AnyQuestion) else query_from(one)
        return self._batch(queries)

    def watch(
        self,
        *,
        positives: int = 1,
        item: str | None = None,
        value_item: str | None = None,
        refresh_after: int | None = None,
        per_unit: int = 1,
        monotone: bool = True,
    ) -> Watched:
        """A conversation that tells when a number of this data reaches a threshold.

        It answers until `positives` answers were positive; negative ones are not limited. `item`
        pays for a threshold, `value_item` for the number that comes with each positive answer.
        One unit may change a number by at most `per_unit`.
        """
        return self._watch(
            ThresholdWatch(
                positives=positives,
                item=item,
                value_item=value_item,
                refresh_after=refresh_after,
                per_unit=per_unit,
                monotone=monotone,
            )
        )

    def watch_guesses(
        self,
        *,
        tolerance: int,
        corrections: int = 1,
        item: str | None = None,
        value_item: str | None = None,
        per_unit: int = 1,
    ) -> Watched:
        """A conversation that says which guesses are off by more than `tolerance`.

        It corrects up to `corrections` of them; right guesses are not limited.
        """
        return self._watch(
            GuessWatch(
                tolerance=tolerance,
                corrections=corrections,
                item=item,
                value_item=value_item,
                per_unit=per_unit,
            )
        )

    @abstractmethod
    def history(self) -> list[PastRelease]:
        """Everything that was released to this analyst about this data, the latest first."""

    @abstractmethod
    def conversations(self) -> list[OpenedConversation]:
        """Every conversation that this analyst opened about this data."""

    @abstractmethod
    def remaining(self) -> Price:
        """Farthings and δ units that are left."""

    @abstractmethod
    def purse(self) -> Purse:
        """What was granted, and what is spent of it."""

    @abstractmethod
    def shut(self) -> None:
        """Give back what is held open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    @abstractmethod
    def _batch(self, queries: Mapping[str, Query]) -> AskedTogether:
        """The queries, asked here together."""

    @abstractmethod
    def _watch(self, kind: WatchKind) -> Watched:
        """A conversation about this data."""
