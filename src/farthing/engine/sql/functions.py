"""Functions that Ibis does not have, as marks that no engine has.

A mark must be replaced before a statement is run; farthing.engine.sql.statement does that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

TEXT_MARK, LIST_MARK, BYTES_MARK, DIGEST_MARK = (
    "farthing_text",
    "farthing_one_of",
    "farthing_bytes",
    "farthing_digest",
)


def text_parameter(place: int) -> Any:
    """Mark: the text at this place among the parameters."""
    return _function(TEXT_MARK, ("int64",), "string")(place)


def in_parameter(column: Any, kind: str, place: int) -> Any:
    """Mark: whether the list at this place among the parameters holds the column's value."""
    return _function(LIST_MARK, (kind, "int64"), "boolean")(column, place)


def as_bytes(text: Any) -> Any:
    """Mark: a text that is compared and ordered by its bytes, whatever it was made from."""
    return _function(BYTES_MARK, ("string",), "string")(text)


def keyed_number(text: Any) -> Any:
    """Mark: the first 28 bits of the MD5 of a text, as a whole number."""
    return _function(DIGEST_MARK, ("string",), "int64")(text)


@cache
def _function(name: str, inputs: tuple[str, ...], output: str) -> Any:
    import ibis

    def of_one(given): ...  # type: ignore[no-untyped-def] # the signature is given below

    def of_two(given, place): ...  # type: ignore[no-untyped-def] # the signature is given below

    return ibis.udf.scalar.builtin(name=name, signature=(inputs, output))(
        of_one if len(inputs) == 1 else of_two
    )
