"""From a kind of question to a method that asks it."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from farthing.engine.kinds.base import Query
from farthing.errors import InvalidInput

P = ParamSpec("P")
Asked = TypeVar("Asked")


class Asker(ABC, Generic[Asked]):
    """Somebody who can ask: turns a query into a question of their own."""

    @abstractmethod
    def question(self, query: Query) -> Asked:
        """The query, asked here."""


class Kind(Generic[P]):
    """A kind as a method of whoever asks: its parameters are the fields of the query."""

    def __init__(self, query: Callable[P, Query]) -> None:
        assert isinstance(query, type)
        assert issubclass(query, Query)
        self.query: type[Query] = query
        self.__doc__ = query.__doc__

    def __set_name__(self, _: type[Any], name: str) -> None:
        assert self.query.kind == name, "one word for a kind, as a method and in plain data"

    def __get__(self, asker: Asker[Asked], _: type[Any]) -> Callable[P, Asked]:
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
