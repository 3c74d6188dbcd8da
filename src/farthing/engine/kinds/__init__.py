"""Every kind of question, a line each in `Kinds`; other installed packages may offer more.

`base` says what a kind is, `fields` what its fields may hold, `completed` what the schema and the
owner's limits make of a query. `labels` and `measures` hold what several kinds share. Kinds that
share a computation share a file, because no file of a kind imports another (`counts`, `totals`).
"""

from __future__ import annotations

import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields as dataclass_fields
from functools import cache, wraps
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from farthing.engine.kinds.base import Query
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.counts import CountQuery, DistinctQuery, HistogramQuery, LossQuery
from farthing.engine.kinds.fields import CHECKS, help_of
from farthing.engine.kinds.limit import LimitQuery
from farthing.engine.kinds.moments import CorrelationQuery, CovarianceQuery, RegressionQuery
from farthing.engine.kinds.quantile import MaxQuery, MinQuery, QuantileQuery
from farthing.engine.kinds.ratio import RatioQuery
from farthing.engine.kinds.rollup import RollupQuery
from farthing.engine.kinds.top_k import TopKQuery
from farthing.engine.kinds.totals import MeanQuery, StandardDeviationQuery, SumQuery, VarianceQuery
from farthing.errors import InvalidInput, Unsupported, require_choice
from farthing.optional import load

log = logging.getLogger("farthing.extensions")

P = ParamSpec("P")
Asked = TypeVar("Asked")

#: Where packages declare their kinds.
GROUP = "farthing.kinds"
#: The word for several questions in plain data.
BATCH = "batch"
#: What a field may hold that no other kind has, so that every way to ask can read it.
_SIMPLE = [*(str, int, float, bool, int | float), *(t | None for t in (str, int, float, bool))]
#: Words that mean something else where a kind is named.
_RESERVED = (BATCH, "sql")


class Kind(Generic[P]):
    """A kind as a method of whoever asks: its parameters are the fields of the query."""

    def __init__(self, query: Callable[P, Query]) -> None:
        assert isinstance(query, type)
        assert issubclass(query, Query)
        self.query: type[Query] = query
        self.__doc__ = query.__doc__

    def __set_name__(self, _: type[Any], name: str) -> None:
        assert self.query.kind == name, "one word for a kind, as a method and in plain data"

    def __get__(self, asker: Kinds[Asked], _: type[Any]) -> Callable[P, Asked]:
        made = self.query

        @wraps(made, updated=())
        def ask(*values: P.args, **named: P.kwargs) -> Asked:
            given = dict(zip(made.field_names(), values, strict=False))
            if len(values) > len(given):
                raise InvalidInput(f"{made.kind} has {len(given)} fields, got {len(values)} values")
            if given.keys() & named.keys():
                raise InvalidInput(f"{min(given.keys() & named.keys())} was given twice")
            return asker.question(made.from_fields({**given, **named}))

        ask.__signature__ = inspect.signature(made)  # type: ignore[attr-defined] # for help()
        return ask


class Kinds(ABC, Generic[Asked]):
    """What can be asked. The name of the method is the word for it everywhere."""

    count = Kind(CountQuery)
    histogram = Kind(HistogramQuery)
    rollup = Kind(RollupQuery)
    top_k = Kind(TopKQuery)
    quantile = Kind(QuantileQuery)
    min = Kind(MinQuery)
    max = Kind(MaxQuery)
    sum = Kind(SumQuery)
    mean = Kind(MeanQuery)
    ratio = Kind(RatioQuery)
    variance = Kind(VarianceQuery)
    standard_deviation = Kind(StandardDeviationQuery)
    covariance = Kind(CovarianceQuery)
    correlation = Kind(CorrelationQuery)
    regression = Kind(RegressionQuery)
    distinct = Kind(DistinctQuery)
    loss = Kind(LossQuery)
    limit = Kind(LimitQuery)
    bound = Kind(BoundQuery)

    @abstractmethod
    def question(self, query: Query) -> Asked:
        """The query, asked here."""

    if not TYPE_CHECKING:  # a type checker knows the built-in kinds alone

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """A kind that another package offers."""
            if name.startswith("_") or name not in KINDS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return Kind(KINDS[name]).__get__(self, type(self))


class _AllKinds(Mapping[str, type[Query]]):
    """The kinds by the word for them: those that are built in, then those of other packages.

    No package can take a built-in name. A kind that cannot be used is left out, with a warning in
    the log; asking for it by name raises Unsupported.
    """

    built_in: Mapping[str, type[Query]] = {
        name: kind.query for name, kind in vars(Kinds).items() if isinstance(kind, Kind)
    }

    def __getitem__(self, name: str) -> type[Query]:
        kind = self.built_in.get(name) or _outside().get(name)
        return kind or _usable(name)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.built_in, *_outside()))

    def __len__(self) -> int:
        return len(self.built_in) + len(_outside())


KINDS: Mapping[str, type[Query]] = _AllKinds()


@cache
def _outside() -> dict[str, type[Query]]:
    """The kinds of other packages that can be used."""
    usable: dict[str, type[Query]] = {}
    for name in load(GROUP):
        try:
            usable[name] = _usable(name)
        except Unsupported as error:
            log.warning("%s", error)
    return usable


def _usable(name: str) -> type[Query]:
    """A kind that a package offers under this name; Unsupported if it is none."""
    offered = load(GROUP)
    if name in _AllKinds.built_in or name in _RESERVED:
        raise offered.refused(name, "the name is built in")
    kind = offered[name]
    why = _unusable(name, kind)
    if why is not None:
        raise offered.refused(name, why)
    assert isinstance(kind, type)
    assert issubclass(kind, Query)
    return kind


def _unusable(name: str, kind: object) -> str | None:
    """What a class lacks to be a kind; None if it is one."""
    if not isinstance(kind, type) or not issubclass(kind, Query):
        return "it is not a subclass of farthing.engine.kinds.base.Query"
    if getattr(kind, "kind", None) != name or not name.isidentifier():
        return f"its kind must be {name!r}, the name of the entry point"
    made = vars(kind).get("__dataclass_params__")
    if made is None or not made.frozen:
        return "it is not a frozen dataclass"
    if inspect.isabstract(kind):
        return f"it does not define {', '.join(sorted(kind.__abstractmethods__))}"
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception as error:
        return f"its fields cannot be read: {error}"
    for own in dataclass_fields(kind):
        hint = hints[own.name]
        if get_origin(hint) is not Annotated:
            return f"{own.name} has no help text: Annotated[type, text]"
        known = own.name in CHECKS or help_of(kind)[own.name].holds is not None
        if not known and get_args(hint)[0] not in _SIMPLE:
            return f"{own.name} must be text, a number or a truth value, or a field of ours"
    return None


def query_from(given: object) -> Query:
    """A query as it is, or from its plain data."""
    if isinstance(given, Query):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a query must be a table of fields, got {type(given).__name__}")
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        kind = require_choice("kind", kind, KINDS)
    return KINDS[kind].from_json(given)
