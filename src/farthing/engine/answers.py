"""The answers of a batch, as one table where they have the same keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import RenderableType

from farthing.composition.tariffs.tariff import Price
from farthing.engine.answer import Answer
from farthing.engine.arithmetic import NOTHING_KNOWN, Number
from farthing.engine.derived import NO_KEY, table_of
from farthing.engine.show import rendering
from farthing.engine.show.sheet import percent, width
from farthing.engine.show.table import Records, Table, TableColumn, Tabular
from farthing.engine.sql.bounding import Label
from farthing.engine.view import Evaluation, View
from farthing.engine.where_text.expressions import Name
from farthing.errors import InvalidInput
from farthing.mechanisms.protocol import Interval, joint_level
from farthing.wording import many


class Answers(dict[str, Answer], Tabular):
    """The answers of a batch, by name. `view`: what a SELECT computes from them."""

    def __init__(self, answers: Mapping[str, Answer], view: View | None = None) -> None:
        super().__init__(answers)
        self.view = view

    @property
    def table(self) -> Table:
        """All numbers for each label. InvalidInput if the answers are not about the same labels."""
        keys = {answer.keys for answer in self.values()}
        if len(keys) != 1:
            raise InvalidInput("answers with different keys are several tables; read them by name")
        (headings,) = keys
        view = self.view or View({name: Name(name) for name in self})
        labels = self._labels()
        told = {name: _by_label(answer) for name, answer in self.items()}
        rows: list[dict[str | int, Any]] = [
            {**{name: numbers.get(label) for name, numbers in told.items()}, **_parts(label)}
            for label in labels
        ]
        places = view.chosen(rows)
        among = len(labels) if view.chooses else None
        columns = self._columns(view, [labels[i] for i in places], among)
        work = Evaluation(rows)
        computed = {
            name: [work.of(expression, i) for i in places]
            for name, expression in view.columns.items()
            if name not in columns
        }
        first = next(iter(self.values()))
        made = table_of(
            "", headings, [labels[i] for i in places], computed,
            first.confidence, among=among, notes=self._notes(len(places), len(labels), among),
        )  # fmt: skip # one call
        by_name = {column.name: column for column in made.columns} | columns
        ordered = tuple(by_name[name] for name in view.columns)
        return replace(made, columns=ordered, paid=self.paid)

    def _columns(
        self, view: View, labels: Sequence[Label], among: int | None
    ) -> dict[str, TableColumn]:
        """The columns that are answers as they are. Of rows that were chosen from so many by their
        numbers, all intervals hold together."""
        columns = {}
        for name, expression in view.columns.items():
            answer = self.get(expression.column) if isinstance(expression, Name) else None
            if answer is None:
                continue
            keys = answer.labels if answer.keys else (NO_KEY,)
            values: Any = answer.labels if answer.counts is None else answer.counts
            ends = _intervals(answer, among)
            found = None if ends is None else tuple(map(ends.get, labels))
            by_label = dict(zip(keys, values, strict=True))
            columns[name] = TableColumn(name, tuple(map(by_label.get, labels)), found)
        return columns

    def _labels(self) -> list[Label]:
        """Those of the longest answer first, in their order."""
        longest = sorted(self.values(), key=len, reverse=True)
        found = (a.labels if a.keys else (NO_KEY,) for a in longest)
        return list(dict.fromkeys(label for labels in found for label in labels))

    def _notes(self, shown: int, rows: int, among: int | None) -> list[str]:
        notes = []
        for name, answer in self.items():
            notes.append(f"{name}: {answer.caption}")
            if answer.query.in_ranks:
                level, near = percent(answer.confidence), width(answer.half_width or 0)
                notes.append(f"{name}: each at {level} within {near} {answer.query.ranks}.")
            notes += [f"{name}: {note}" for note in answer.sheet.notes]
        if shown < rows:
            notes.append(f"{shown} of {many(rows, 'row')} are shown.")
        if among is not None:
            notes.append(
                "Rows were chosen by their released numbers, so each column's intervals hold for "
                "all rows together, shown or not."
            )
        return notes

    @property
    def paid(self) -> str:
        """The last line: price and what remains."""
        new = [answer for answer in self.values() if not answer.cached]
        last = next(reversed(self.values()))
        price, parts = sum((one.price for one in new), Price(0)), [one.spending for one in new]
        told = [part for part in parts if part is not None]
        spending = replace(told[0], share=sum(part.share for part in told)) if told else None
        return replace(last, price=price, spending=spending, cached=not new).paid

    @property
    def records(self) -> Records:
        return self.table.records

    @property
    def _as_one(self) -> bool:
        """Whether it is shown as one table: what a SELECT gives, and several numbers of one key."""
        keys = {answer.keys for answer in self.values()}
        listed = any(answer.counts is None for answer in self.values())
        return self.view is not None or (
            len(self) > 1 and len(keys) == 1 and keys != {()} and not listed
        )

    def __rich__(self) -> RenderableType:
        if self._as_one:
            return self.table
        return rendering.answers_table({name: answer.sheet for name, answer in self.items()})

    def __str__(self) -> str:
        return rendering.as_text(self.__rich__())

    def _repr_html_(self) -> str:
        if self._as_one:
            return self.table._repr_html_()
        return rendering.answers_html({name: answer.sheet for name, answer in self.items()})


def _intervals(answer: Answer, among: int | None) -> dict[Label, Interval] | None:
    """Its intervals by label; of rows that were chosen, those that hold for so many together."""
    if answer.intervals is None or answer.query.in_ranks:
        return None
    if among is None:
        return dict(zip(answer.labels if answer.keys else (NO_KEY,), answer.intervals, strict=True))
    level, (least, most) = joint_level(answer.confidence, among), answer.query.possible
    drawn = {label: number.interval(level) for label, number in answer.numbers().items()}
    return {
        label: (min(max(low, least), most), min(max(high, least), most))
        for label, (low, high) in drawn.items()
    }


def _by_label(answer: Answer) -> dict[Label, Any]:
    """Its numbers, to compute with. Of a value in ranks nothing is known but the value itself."""
    if not answer.query.in_ranks and answer.counts is not None:
        return dict(answer.numbers())
    labels = answer.labels if answer.keys else (NO_KEY,)
    values: Sequence[Any] = answer.counts if answer.counts is not None else answer.labels

    def number(value: Any, i: int) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        draws = [(answer.drawn, answer.caption, i)]
        return Number.ranged(float(value), lambda _: NOTHING_KNOWN, draws)

    told = enumerate(zip(labels, values, strict=True))
    return {label: number(value, i) for i, (label, value) in told}


def _parts(label: Label) -> dict[str | int, Any]:
    return dict(enumerate(label if isinstance(label, tuple) else (label,)))
