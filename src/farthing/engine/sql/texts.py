"""Values of a question: they travel beside the statement as parameters, never inside its text.

An expression holds a mark with the place of the value; when the statement is written the mark
becomes the engine's own placeholder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from farthing.engine.sql.functions import in_parameter, text_parameter
from farthing.errors import InvalidInput

#: What an engine is handed beside a statement: a text, or a list of texts or of whole numbers.
Parameter: TypeAlias = str | tuple[str | int, ...]


class Texts:
    """Collects the values of one statement."""

    def __init__(self) -> None:
        self._values: list[Parameter] = []

    @property
    def values(self) -> tuple[Parameter, ...]:
        """Every value so far; a mark holds its place in this list."""
        return tuple(self._values)

    def literal(self, value: str) -> Any:
        """An expression that is this text."""
        return text_parameter(self._keep(require_unicode(value)))

    def one_of(self, column: Any, values: Iterable[str] | Iterable[int]) -> Any:
        """Whether a column of texts or of whole numbers has one of these values."""
        if column.type().is_string():
            known = tuple(require_unicode(value) for value in values)
            return in_parameter(column, "string", self._keep(known))
        return in_parameter(column, "int64", self._keep(tuple(map(int, values))))

    def _keep(self, value: Parameter) -> int:
        self._values.append(value)
        return len(self._values) - 1


def require_unicode(value: object) -> str:
    """A text that has UTF-8, or InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"a value must be text, got {type(value).__name__}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("a text must be Unicode without lone surrogates") from None
    return value
