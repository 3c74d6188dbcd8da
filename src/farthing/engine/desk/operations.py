"""What an owner can do, each operation declared once.

An operation is a function. Its first parameter is the `Office`, the other ones are its fields;
what a field means is in `FIELDS`, or in `fields=` where it means something else:

    @operation("POST /datasets/{dataset}/grants", command="owner grant", once=True,
               said="{analyst} holds {farthings} farthings")
    def grant(office: Office, dataset: str, analyst: str, *, farthings: int) -> Purse:

The rest follows from the declaration: the method of `Desk`, here and over HTTP (client/connect.py),
the route with its description (server/routes/owners.py), the command (cli/forms.py), the console's
form, and the table in the reference (docs/generated/operations.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property, wraps
from types import NoneType, UnionType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, get_type_hints
from urllib.parse import quote

from farthing.engine.sources.base import Source
from farthing.errors import InvalidInput, Unsupported
from farthing.ledger import Ledger, NotInLedger, Owner, Reader

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

#: A field without a default, and the type of a field that a request or a command does not have.
NEEDED, ABSENT = inspect.Parameter.empty, type("Absent", (), {})
#: How a value of a type is entered in a form; everything else as JSON.
CONTROLS: dict[Any, str] = {bool: "yes", int: "whole", float: "number", str: "text"}
CONTROLS |= {datetime: "date", list[str]: "list"}
#: The names in a path.
_NAMED = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Office:
    """What operations work with: a ledger, and what a service has besides.

    `sources` are the datasets of a service's configuration by name, `access` its tokens.
    """

    book: Ledger | None
    name: str = "owner"
    sources: Mapping[str, Source] = field(default_factory=dict)
    access: Any = None

    @property
    def ledger(self) -> Ledger:
        """The ledger, which commands about tokens do not have."""
        if self.book is None:
            raise InvalidInput("this needs a ledger, and none is open")
        return self.book

    @property
    def reader(self) -> Reader:
        """Everything in the ledger, to be read."""
        return self.ledger.reader()

    @property
    def owner(self) -> Owner:
        """The ledger, to be written."""
        return self.ledger.owner()

    @property
    def tokens(self) -> Any:
        """The tokens of a service (server/access.py); Unsupported where there is none."""
        if self.access is None:
            raise Unsupported("tokens belong to a service; use `farthing tokens` with its --config")
        return self.access

    def source(self, name: str) -> Source:
        """A dataset of the configuration: an owner's token opens no other files."""
        if name not in self.sources:
            raise NotInLedger(f"the configuration has no dataset {name!r:.60}")
        return self.sources[name]


@dataclass(frozen=True)
class Given:
    """What a field means, and how it is given where that is not as in Python.

    On the command line it is an option, or an `argument`; `typed` is its type there, `read` makes
    the value from what was typed, `nothing` is the flag for None. In a request `sent` is its type
    and `plain` makes plain data from the value; a list or table has at most `most` members.
    """

    words: str
    label: str = ""
    example: Any = None
    argument: str = ""
    option: str = ""
    typed: Any = None
    read: Callable[[Any], Any] | None = None
    sent: Any = None
    plain: Callable[[Any], Any] | None = None
    choices: tuple[str, ...] = ()
    nothing: str = ""
    most: int | None = None
    # known from the function that has the field
    name: str = ""
    type: Any = None
    default: Any = NEEDED
    in_path: bool = False

    def form(self) -> dict[str, Any]:
        """The field as a form shows it."""
        hint, needed = self.sent or self.type, self.default is NEEDED
        union = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kind = next(one for one in union if one is not NoneType)
        return {
            "name": self.name,
            "label": self.label or self.name.replace("_", " ").capitalize(),
            "kind": "choice" if self.choices else CONTROLS.get(kind, "json"),
            "help": self.words,
            "needed": needed,
            "choices": list(self.choices),
            "start": None if needed else self.default,
        }


_EMPTY = "Empty: each question says it."
#: What fields of these names mean, whichever operation has them.
FIELDS = {
    "account": Given("A tariff or list by name; else the one in force, or all."),
    "analyst": Given("The analyst's name.", "Analyst", "ann", argument="ANALYST"),
    "beside": Given("A dataset on the same data."),
    "contribution_limit": Given(
        f"Labels of a unit that may count. {_EMPTY}", "Labels of one unit that count"
    ),
    "dataset": Given("The dataset.", argument="DATASET"),
    "delta": Given("The budget: the chance that it fails.", "δ", 1e-6),
    "delta_units": Given("Units of δ. Empty: in proportion, as in the tariff.", "δ units"),
    "entry": Given("Number of the reservation.", example=7, argument="ENTRY"),
    "epsilon": Given("The budget: what everything may cost.", "ε", 3.0),
    "farthings": Given("How many farthings.", example=100),
    "file": Given("The file.", argument="FILE"),
    "identity": Given("Its id.", argument="ID"),
    "months": Given("For so many months."),
    "name": Given("A name for it.", example="second"),
    "owner": Given("Who answers for the data."),
    "per_key_limit": Given(
        f"Rows of a unit and label that may count. {_EMPTY}",
        "Rows of one unit that count for one label",
    ),
    "prove": Given("Prove every certificate again, from nothing."),
    "reason": Given("Why.", example="a crash"),
    "since": Given("From then on."),
    "successor": Given("The identity of the ledger where it goes on."),
    "target": Given("The ledger to move to.", argument="TARGET"),
    "unit": Given(
        "The column that says whose row it is; or row: each row is protected on its own.",
        "Unit of privacy",
        "member_id",
    ),
    "until": Given("Before then."),
    "version": Given("Empty: the rows may change without notice.", "Version of the rows", "2"),
}


def plain_data(value: Any) -> Any:
    """A value as JSON can hold it."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain_data(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(one) for one in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


@dataclass(frozen=True)
class Operation:
    """One thing that an owner can do.

    `said` are the words for people, a template or a function of the answer: the plain data that a
    command prints with --json and a route gives. `answer` makes it where the result, `under` a name
    if it is a list, is not enough; `back` makes the result again. `once`: a request that is sent
    again is done once. `slow`: it may become a job. `busy`: what a progress bar says. `query`: the
    fields of a POST are in the address. `creates`: the ledger may be a new one.
    """

    function: Callable[..., Any]
    method: str = ""
    path: str = ""
    command: str = ""
    answer: Callable[[Office, Mapping[str, Any], Any], dict[str, Any]] | None = None
    back: Callable[[dict[str, Any]], Any] | None = None
    under: str = ""
    said: str | Callable[[dict[str, Any]], str] = ""
    fields: Mapping[str, Given] = field(default_factory=dict)
    busy: str = "reading"
    once: bool = False
    slow: bool = False
    query: bool = False
    creates: bool = False

    @property
    def name(self) -> str:
        """The name of the method."""
        return self.function.__name__

    @property
    def words(self) -> str:
        """The help text."""
        return inspect.getdoc(self.function) or ""

    @property
    def in_body(self) -> bool:
        """Whether a request has its fields in the body."""
        return self.method == "POST" and not self.query

    @cached_property
    def hints(self) -> dict[str, Any]:
        """Types, that of the result too."""
        return get_type_hints(self.function)

    @cached_property
    def parameters(self) -> tuple[Given, ...]:
        """The fields, in order."""
        known, inside = {**FIELDS, **self.fields}, _NAMED.findall(self.path)
        own = list(inspect.signature(self.function).parameters.items())[1:]
        return tuple(
            replace(
                known[name],
                name=name,
                type=self.hints[name],
                default=one.default,
                in_path=name in inside,
            )
            for name, one in own
        )

    @property
    def requested(self) -> list[Given]:
        """The fields of a request, without those of the path."""
        return [one for one in self.parameters if one.sent is not ABSENT and not one.in_path]

    def tell(self, office: Office, given: Mapping[str, Any]) -> dict[str, Any]:
        """Do it, and give the answer."""
        result = self.function(office, **given)
        if self.answer is not None:
            return self.answer(office, given, result)
        inside = {one.name: given[one.name] for one in self.parameters if one.in_path}
        return {**inside, self.under: result} if self.under else dict(result)

    def result(self, answer: dict[str, Any]) -> Any:
        """The result that an answer tells of."""
        made: Any = self.hints["return"]
        if self.back is not None:
            return self.back(answer)
        if isinstance(made, type) and is_dataclass(made):
            return made(**{one.name: answer[one.name] for one in fields(made)})
        return answer[self.under] if self.under else answer

    def address(self, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Where a request goes, and its fields as plain data."""
        known = {one.name: one.plain or plain_data for one in self.parameters}
        sent = {name: value and known[name](value) for name, value in given.items()}
        inside = {name: quote(str(sent.pop(name)), safe="") for name in _NAMED.findall(self.path)}
        return f"/v1/owner{self.path.format(**inside)}", sent

    def in_words(self, answer: dict[str, Any]) -> str:
        """What people are told."""
        return self.said.format(**answer) if isinstance(self.said, str) else self.said(answer)


#: Every operation by name.
OPERATIONS: dict[str, Operation] = {}


def operation(request: str = "", **declared: Any) -> Callable[[F], F]:
    """Declare a function as an operation; see `Operation`."""

    def register(function: F) -> F:
        method, _, path = request.partition(" ")
        OPERATIONS[function.__name__] = Operation(function, method, path, **declared)
        return function

    return register


class Method(Generic[P, R]):
    """An operation as a method of a desk, whose `perform` does it."""

    def __init__(self, function: Callable[Concatenate[Office, P], R]) -> None:
        self.operation = OPERATIONS[function.__name__]
        self.__doc__ = function.__doc__

    def __get__(self, desk: Any, _: type[Any]) -> Callable[P, R]:
        declared, signature = self.operation, inspect.signature(self.operation.function)
        own = signature.replace(parameters=list(signature.parameters.values())[1:])

        @wraps(declared.function)
        def act(*values: P.args, **named: P.kwargs) -> R:
            result: R = desk.perform(declared, own.bind(*values, **named).arguments)
            return result

        act.__signature__ = own  # type: ignore[attr-defined] # for help()
        return act
