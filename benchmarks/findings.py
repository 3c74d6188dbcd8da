"""What a part of the benchmark found: facts that survive as JSON and read as Markdown."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """A number that was asked for, and what it is here."""

    what: str
    measured: float
    goal: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is."""
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal

    @property
    def cells(self) -> list[str]:
        """A row of the report."""
        sign = "≥" if self.at_least else "≤"
        asked = f"{sign} {self.goal:g} {self.unit}".strip()
        measured = f"{shown(self.measured)} {self.unit}".strip()
        return [self.what, asked, measured, "yes" if self.met else "**no**"]


@dataclass(frozen=True, slots=True)
class Beside:
    """One question to us and to a peer; less is better. What a peer cannot do says why."""

    question: str
    unit: str
    ours: float
    peer: str
    theirs: float | None
    note: str = ""
    #: A difference within this part is none: noise of the same scale, times of the same code.
    same: float = 0.05

    @property
    def ratio(self) -> float | None:
        """How many times ours theirs is."""
        return None if self.theirs is None else self.theirs / self.ours if self.ours else math.inf

    @property
    def verdict(self) -> str:
        """Who has less."""
        if self.theirs is None:
            return "-"
        if self.theirs == self.ours or abs(self.theirs - self.ours) <= self.same * abs(self.ours):
            return "even"
        return "farthing" if self.theirs > self.ours else "**peer**"

    @property
    def cells(self) -> list[str]:
        """A row of the report."""
        theirs = "not measured" if self.theirs is None else shown(self.theirs)
        times = "" if self.ratio is None or math.isinf(self.ratio) else f"{self.ratio:.3g}"
        what = [self.question, self.unit, shown(self.ours), self.peer, theirs]
        return [*what, times, self.verdict, self.note]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with what is to be known to read them."""

    caption: str
    header: list[str]
    rows: list[list[str]]

    @property
    def markdown(self) -> str:
        """The same as text."""
        return f"{self.caption}\n\n{markdown_table(self.header, self.rows)}"


@dataclass(frozen=True, slots=True)
class Findings:
    """One part: its tables, what was asked for, and the peers."""

    title: str
    tables: tuple[Table, ...]
    goals: tuple[Goal, ...] = ()
    besides: tuple[Beside, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Findings:
        """Read back."""
        return cls(
            document["title"],
            tuple(Table(**one) for one in document["tables"]),
            tuple(Goal(**one) for one in document["goals"]),
            tuple(Beside(**one) for one in document["besides"]),
        )

    @property
    def markdown(self) -> str:
        """A section of the report."""
        return "\n".join([f"## {self.title}\n", *(table.markdown for table in self.tables)])


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *rows]]
    return "\n".join(lines) + "\n"


def shown(number: float) -> str:
    """Three digits, and whole numbers whole."""
    return f"{number:,.0f}" if abs(number) >= 1000 or number == int(number) else f"{number:.3g}"
