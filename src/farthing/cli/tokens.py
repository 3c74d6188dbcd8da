"""`farthing tokens …`: who may come in. For the machine that the service runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from farthing.cli import options
from farthing.cli.ledger_options import say
from farthing.server.access.store import AccessStore
from farthing.server.access.tokens import TokenRecord, listed, mint, withdraw
from farthing.server.settings import read_settings

tokens = typer.Typer(
    name="tokens", help="Who may come in: mint, list, withdraw.", no_args_is_help=True
)

Configuration = Annotated[
    Path, typer.Option("--config", "-c", help="The service's farthing.toml.", show_default=False)
]


@tokens.command("mint")
def mint_command(
    role: Annotated[str, typer.Argument(metavar="ROLE", help="owner or analyst.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is; an analyst's purse.")],
    config: Configuration,
    days: Annotated[
        float | None, typer.Option("--days", min=0, help="Valid for so long; else for ever.")
    ] = None,
    datasets: Annotated[
        list[str] | None, typer.Option("--dataset", help="Only this one; may be repeated.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a token. It is shown here and never again."""
    expires = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with _store(config) as store:
        token, record = mint(store, role, name, datasets=datasets or None, expires=expires)
    say(as_json, {"token": token, **record.to_json()}, token)


@tokens.command("list")
def list_tokens_command(config: Configuration, as_json: options.AsJson = False) -> None:
    """Every token, the latest first; never the tokens themselves."""
    with _store(config) as store:
        found = listed(store)
    say(
        as_json,
        {"tokens": [one.to_json() for one in found]},
        "\n".join(map(_line, found)) or "there are no tokens",
    )


@tokens.command("withdraw")
def withdraw_command(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The part after fth_.")],
    config: Configuration,
    as_json: options.AsJson = False,
) -> None:
    """The token is good for nothing from now on."""
    with _store(config) as store:
        record = withdraw(store, identity)
    say(as_json, record.to_json(), f"the token {record.id} of {record.name} was withdrawn")


@contextmanager
def _store(config: Path) -> Iterator[AccessStore]:
    store = AccessStore(read_settings(config).access)
    try:
        yield store
    finally:
        store.shut()


def _line(one: TokenRecord) -> str:
    ends = f", until {one.expires}" if one.expires else ""
    state = f", withdrawn {one.revoked}" if one.revoked else ends
    return f"{one.id}  {one.role} {one.name}, since {one.created}{state}"
