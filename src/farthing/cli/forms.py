"""Commands with many options: a dataclass whose fields are the options, and whose `run` runs it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import typer

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Form(Protocol):
    """What was filled in."""

    def run(self) -> None:
        """Do it."""


Filled = TypeVar("Filled", bound=type[Form])


def options_of(form: Callable[..., Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters that Typer understands."""
    return list(inspect.signature(form, eval_str=True).parameters.values())


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
