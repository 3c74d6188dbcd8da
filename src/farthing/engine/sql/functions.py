"""Functions that Ibis does not have: two of every engine, and marks that no engine has.

A mark must be replaced before a statement is run; farthing.engine.sql.statement does that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

TEXT_MARK, LIST_MARK, BYTES_MARK = "farthing_text", "farthing_one_of", "farthing_bytes"


def text_parameter(place: int) -> Any:
    """Mark: the text at this place among the parameters."""
    return _function(TEXT_MARK, ("int64",), "string")(place)


def in_parameter(column: Any, kind: str, place: int) -> Any:
    """Mark: whether the list at this place among the parameters holds the column's value."""
    return _function(LIST_MARK, (kind, "int64"), "boolean")(column, place)


def as_bytes(text: Any) -> Any:
    """Mark: a text that is compared and ordered by its bytes, whatever it was made from."""
    return _function(BYTES_MARK, ("string",), "string")(text)


def md5(text: Any) -> Any:
    """MD5 in hexadecimal, by the name it has on every engine."""
    return _function("md5", ("string",), "string")(text)


@cache
def _function(name: str, inputs: tuple[str, ...], output: str) -> Any:
    import ibis

    def of_one(given): ...  # type: ignore[no-untyped-def] # the signature is given below

    def of_two(given, place): ...  # type: ignore[no-untyped-def] # the signature is given below

    return ibis.udf.scalar.builtin(name=name, signature=(inputs, output))(
        of_one if len(inputs) == 1 else of_two
    )
