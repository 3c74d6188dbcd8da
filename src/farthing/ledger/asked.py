"""What was asked of a dataset so far: which queries, what they guarantee, how often."""

from __future__ import annotations

from collections import Counter
from typing import Any

from farthing.guarantees.notation import format_guarantee
from farthing.ledger.facts import SETWISE, TARIFF
from farthing.ledger.reading import Reader


def asked(ledger: Reader, dataset: str) -> list[dict[str, Any]]:
    """One row for each kind of query with the guarantees it was charged for, the commonest first.

    The kind, the mechanism and how much of a unit counts are those that the question states.
    """
    known = {book.number: _guarantees(ledger, dataset, book) for book in ledger.accounts(dataset)}
    counts = Counter(
        (
            _query(fact["question"]),
            _contribution(fact["question"]),
            "; ".join(known[fact["account"]][item] for item in fact["items"]),
        )
        for fact in (entry.fact for entry in ledger.entries(dataset, kind="reserve"))
    )
    return [
        {"query": query, "contribution": limit, "guarantees": guarantees, "times": times}
        for (query, limit, guarantees), times in counts.most_common()
    ]


def _guarantees(ledger: Reader, dataset: str, book: Any) -> dict[str, str]:
    """What each thing that can be reserved guarantees."""
    if book.mode == TARIFF:
        items = ledger.tariff(dataset, book.number).items
        return {name: f"{name} {format_guarantee(one)}" for name, (one, _) in items.items()}
    if book.mode == SETWISE:
        listed = ledger.document(dataset, book.number)["list"]
        return {name: f"{name} {guarantee}" for name, (guarantee, _) in listed}
    return {lot.item: f"list {book.name}" for lot in ledger.lots(dataset, book.name)}


def _query(question: Any) -> str:
    query = _stated(question)
    if query is None:
        batch = isinstance(question, dict) and question and all(map(_stated, question.values()))
        return f"batch of {len(question)}" if batch else "not stated"
    mechanism = query.get("mechanism")
    return f"{query['kind']} ({mechanism})" if isinstance(mechanism, str) else str(query["kind"])


def _contribution(question: Any) -> str:
    query = _stated(question)
    if query is None:
        return "not stated"
    if "lower" in query and "contribution_limit" not in query:
        return f"a sum from {query['lower']} to {query['upper']}"
    keys, rows = query.get("contribution_limit", 1), query.get("per_key_limit", 1)
    return f"{'all' if keys is None else keys} keys, {rows} rows each"


def _stated(question: Any) -> dict[str, Any] | None:
    """The query in a question that the engine, or somebody like it, has asked."""
    query = question.get("query") if isinstance(question, dict) else None
    return query if isinstance(query, dict) and isinstance(query.get("kind"), str) else None
