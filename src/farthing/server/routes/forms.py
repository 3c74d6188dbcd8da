"""The forms of the console, described: fields, help and choices of everything that can be asked.

They follow from the declarations of questions, conversations and owners' operations, so that a new
one needs nothing here. `WORDS` has better labels for fields that many people see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from fastapi import APIRouter

from farthing.engine.conversation_kinds import CONVERSATIONS
from farthing.engine.desk.operations import OPERATIONS
from farthing.engine.kinds import KINDS
from farthing.engine.kinds.base import Query
from farthing.server.access.callers import OwnerCaller
from farthing.server.routes.dependencies import AnyCaller, At, UnpaidRoute, refusals

forms_router = APIRouter(prefix="/v1/forms", route_class=UnpaidRoute, tags=["everybody"])

#: The label of a field in a form, and help where a form is not filled in like a command.
WORDS: dict[str, tuple[str, str]] = {
    "where": ("Only rows where", "For example country == 'NO' and age >= 18. Empty: all rows."),
    "by": ("For each", "A column, or several with commas; month(day), bins(age, 18, 65) too."),
    "k": ("How many", ""),
    "counts": ("With their counts", ""),
    "categories": ("Labels known beforehand", "With commas. All are answered; no δ is needed."),
    "contribution_limit": ("Labels of one unit that count", "Empty: the owner's limit."),
    "per_key_limit": ("Rows of one unit that count for one label", ""),
    "select": ("Item that pays for selections", ""),
    "count": ("Item that pays for counts", ""),
    "leak": ("Item that pays for δ", ""),
    "epsilon": ("ε of each item", ""),
    "lower": ("Smallest value", ""),
    "upper": ("Largest value", ""),
    "sum lower": ("Smallest sum of one unit", ""),
    "sum upper": ("Largest sum of one unit", ""),
    "distinct column": ("Values of", ""),
    "probability": ("Which quantile", "0.5 is the median."),
    "half_width": ("Each number within ±", "Empty: the usual item. A narrower one costs more."),
    "tells_apart": ("Order right from a difference of", "The larger of two such counts is first."),
    "rows": ("Rows that count, roughly", "Needed to turn a width of a mean into a price."),
    "positives": ("Times that it may say yes", "Each “no” is free; then it is over."),
    "tolerance": ("Right within ±", "Farther off, and the answer brings a number."),
    "corrections": ("Times that it may correct me", "Each “right” is free; then it is over."),
    "per_unit": (
        "What one unit may change a number by",
        "Counts of units: 1. Counts of rows: the rows of one unit that count. Sums: the larger of "
        "the bounds, in units of the last decimal. Median: the rows of one unit; the 0.9 quantile: "
        "9 times that.",
    ),
    "monotone": ("Of which numbers", "What a unit can raise and lower needs twice the noise."),
    "questions": ("Questions, roughly", "Only for the accuracy that is shown; there is no limit."),
}
CHOICES = {
    "monotone": [
        [True, "Counts and sums from 0 upwards"],
        [False, "Quantiles, and sums of negative values too"],
    ]
}
#: What a question can be made to reach; by default the width of its numbers.
AIMS = {
    "top_k": ("half_width", "tells_apart"),
    "mean": ("half_width", "rows"),
    "variance": ("half_width", "rows"),
    "standard_deviation": ("half_width", "rows"),
    "quantile": (),
    "limit": (),
}
#: Fields that are shown before anybody asks for more, and those that limit a unit.
FIRST = {"where", "by", "k", "counts", "categories", "column", "lower", "upper", "probability"}
FIRST |= {"positives", "tolerance", "corrections", "monotone", "per_unit"}
LIMITS = {"contribution_limit", "per_key_limit"}
#: How fields are entered whose type does not say it, and others by their type.
CONTROLS = {"by": "columns", "categories": "list", "limits": "numbers", "noise": "numbers"}
CONTROLS |= {"where": "text", "distinct column": "column", "column": "number column"}
TYPES = {bool: "yes", int: "whole", float: "number"}
#: Questions whose number a conversation can be about, and whether a unit only raises it.
WATCHED = {"count": True, "distinct": True, "sum": True, "quantile": False}


def form_of(kind: type[Any], name: str) -> dict[str, Any]:
    """The form of a kind of question or conversation, from its dataclass."""
    return {
        "words": name.replace("_", " ").capitalize(),
        "help": (kind.__doc__ or "").partition("\n")[0],
        "fields": list(_fields(kind, name)),
        "aims": [_field(aim, "", float | None) for aim in AIMS.get(name, ("half_width",))],
    }


def _fields(kind: type[Any], name: str) -> Iterator[dict[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    defaults = {one.name: one.default for one in fields(kind)}
    for field in kind.field_names() if issubclass(kind, Query) else defaults:
        hint, words = hints[field], ""
        if get_origin(hint) is Annotated:
            hint, words = get_args(hint)[:2]
        yield _field(field, words, hint, kind=name, default=defaults[field])


def _field(
    name: str, words: str, hint: Any, *, kind: str = "", default: Any = None
) -> dict[str, Any]:
    known = f"{kind} {name}"
    label, better = WORDS.get(known) or WORDS.get(name) or (name.replace("_", " ").capitalize(), "")
    types = [one for one in get_args(hint) or (hint,) if one is not type(None)]
    group = (
        "first" if name in FIRST or default is MISSING else "limits" if name in LIMITS else "more"
    )
    control = CONTROLS.get(known) or CONTROLS.get(name) or TYPES.get(types[-1], "text")
    if any(get_origin(one) is Literal for one in types):  # a number, or a word such as auto
        control = "whole"
    return {
        "name": name,
        "label": label,
        "help": better or words,
        "kind": "choice" if name in CHOICES else control,
        "choices": CHOICES.get(name, []),
        "needed": default is MISSING,
        "start": None if default is MISSING else default,
        "group": "first" if default is MISSING else group,
    }


@cache
def _described() -> dict[str, Any]:
    watched = {}
    for name, raised in WATCHED.items():
        form = form_of(KINDS[name], name)
        grouped = any(one["name"] == "by" for one in form["fields"])
        without = {"by", "categories", *(["contribution_limit"] if grouped else [])}
        kept = [one for one in form["fields"] if one["name"] not in without]
        watched[name] = {**form, "fields": kept, "aims": [], "raised": raised}
    return {
        "questions": {name: form_of(kind, name) for name, kind in KINDS.items()},
        "watched": watched,
        "conversations": {
            name: {**form_of(kind, name), "aims": [_field("questions", "", int, default=100)]}
            for name, kind in CONVERSATIONS.items()
        },
    }


@forms_router.get("", responses=refusals())
def show_forms(_service: At, caller: AnyCaller) -> dict[str, Any]:
    """What can be asked: every kind of question and conversation, with fields, help and choices;
    for an owner also every operation."""
    if not isinstance(caller, OwnerCaller):
        return _described()
    operations = {
        name: {
            "help": one.words,
            "method": one.method,
            "path": one.path,
            "fields": [field.form() for field in one.requested],
        }
        for name, one in OPERATIONS.items()
        if one.path
    }
    return {**_described(), "operations": operations}
