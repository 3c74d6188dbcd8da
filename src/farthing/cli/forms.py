"""Commands with many options: a dataclass whose fields are the options, and whose `run` runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, get_type_hints

import typer

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Form(Protocol):
    """What was filled in."""

    def run(self) -> None:
        """Do it."""


Filled = TypeVar("Filled", bound=type[Form])


def options_of(form: type[Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass, inherited ones too, as parameters that Typer understands."""
    hints = get_type_hints(form, include_extras=True)
    fields = inspect.signature(form).parameters.values()
    return [field.replace(annotation=hints[field.name]) for field in fields]


def with_options(
    run: Callable[..., None], parameters: list[inspect.Parameter], words: str | None
) -> Callable[..., None]:
    """A function that Typer takes to have these parameters, those without a default first."""
    needed_first = sorted(parameters, key=lambda p: p.default is not inspect.Parameter.empty)
    ordered = [p.replace(kind=POSITIONAL) for p in needed_first]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined] # read by Typer
    run.__annotations__ = {p.name: p.annotation for p in ordered}
    run.__doc__ = words
    return run


def command(app: typer.Typer, name: str) -> Callable[[Filled], Filled]:
    """Register a form as a command; its docstring is the help."""

    def register(form: Filled) -> Filled:
        def run(**given: Any) -> None:
            form(**given).run()

        app.command(name)(with_options(run, options_of(form), form.__doc__))
        return form

    return register
