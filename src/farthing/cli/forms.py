"""Commands from declarations: a dataclass whose fields are options, or an owner's operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, get_type_hints

import typer

from farthing.cli.options import AsJson, LedgerAt, say, warn
from farthing.cli.output import patience
from farthing.engine.desk.operations import (
    ABSENT,
    FIELDS,
    NEEDED,
    OPERATIONS,
    Given,
    Office,
    Operation,
)
from farthing.errors import InvalidInput, require_choice
from farthing.ledger import Ledger

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


def field_option(name: str) -> Any:
    """The option for a field that operations have too."""
    return typer.Option(f"--{name.replace('_', '-')}", help=FIELDS[name].words)


@dataclass(frozen=True)
class AtLedger:
    """Which ledger."""

    where: LedgerAt


@contextmanager
def at_ledger(operation: Operation, where: str) -> Iterator[Office]:
    """A ledger that is there, or a new one where the operation makes one."""
    with Ledger.open(where, upgrade=operation.creates) as ledger:
        yield Office(ledger)


#: Opens what an operation works with, from the options that its group has.
Opening = Callable[..., AbstractContextManager[Office]]


def add_operations(group: typer.Typer, where: type[Any], opened: Opening) -> None:
    """The commands of every operation whose command is in this group."""
    for operation in OPERATIONS.values():
        word, _, name = operation.command.partition(" ")
        if word == group.info.name:
            group.command(name)(_command_of(operation, options_of(where), opened))


def _command_of(
    operation: Operation, shared: list[inspect.Parameter], opened: Opening
) -> Callable[..., None]:
    fields = [one for one in operation.parameters if one.typed is not ABSENT]

    def run(as_json: bool, **given: Any) -> None:
        where = {one.name: given.pop(one.name) for one in shared}
        with patience(operation.busy):
            values = {field.name: _value(field, given) for field in fields}
            with opened(operation, **where) as office:
                answer = operation.tell(office, values)
        warn(answer.get("warning"))
        say(as_json, answer, operation.in_words(answer))

    typed = [parameter for field in fields for parameter in _typed(field)]
    as_json = inspect.Parameter("as_json", POSITIONAL, default=False, annotation=AsJson)
    return with_options(run, [*typed, *shared, as_json], operation.words)


def _typed(field: Given) -> Iterator[inspect.Parameter]:
    """A field as Typer understands it; one that may be None with a flag as two."""
    default = field.default
    kind: Any = field.typed or field.type
    if field.nothing and default is NEEDED:
        default = None
    shown: dict[str, Any] = {"help": field.words, "show_default": default not in (NEEDED, None)}
    flag = field.option or f"--{field.name.replace('_', '-')}"
    if field.argument:
        option = typer.Argument(metavar=field.argument, **shown)
    elif len(field.choices) == 1:
        kind, default = bool, False
        option = typer.Option(f"--{field.choices[0]}", **shown)
    else:
        option = typer.Option(flag, **shown)
    yield inspect.Parameter(
        field.name, POSITIONAL, default=default, annotation=Annotated[kind, option]
    )
    if field.nothing:
        none = typer.Option(f"--{field.nothing}", help=f"Without notice: no {field.name}.")
        yield inspect.Parameter(
            field.nothing, POSITIONAL, default=False, annotation=Annotated[bool, none]
        )


def _value(field: Given, given: Mapping[str, Any]) -> Any:
    """The value of a field from what was typed."""
    value, nothing = given[field.name], field.nothing
    if nothing and (value is None) != given[nothing]:
        raise InvalidInput(f"give a {field.name}, or --{nothing} for none")
    if len(field.choices) == 1:
        return field.choices[0] if value else None
    if field.choices:
        require_choice(field.name, value, field.choices)
    return field.read(value) if field.read and value is not None else value
