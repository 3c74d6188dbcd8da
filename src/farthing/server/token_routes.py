"""Tokens: minted and withdrawn by owners, shown once."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from farthing.server.access.tokens import listed, mint, withdraw
from farthing.server.coming_in import At, Name, OwnerHere, UnpaidRoute, refusals
from farthing.server.problems import nothing_here

token_router = APIRouter(prefix="/v1/owner/tokens", route_class=UnpaidRoute, tags=["tokens"])


class TokenBody(BaseModel):
    """Whom a token is for; without `datasets` all that are granted, without `expires` for ever."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"role": "analyst", "name": "ann"}]}
    )

    role: Literal["owner", "analyst"]
    name: Name
    datasets: Annotated[list[Name] | None, Field(max_length=1000)] = None
    expires: datetime | None = None


@token_router.get("", responses=refusals())
def list_tokens(service: At, _: OwnerHere) -> dict[str, Any]:
    """Every token, the latest first; never the tokens themselves."""
    return {"tokens": [one.to_json() for one in listed(service.access)]}


@token_router.post("", responses=refusals())
def mint_token(body: TokenBody, service: At, _: OwnerHere) -> dict[str, Any]:
    """A new token. It is shown here and never again."""
    token, record = mint(
        service.access, body.role, body.name, datasets=body.datasets, expires=body.expires
    )
    return {"token": token, **record.to_json()}


@token_router.delete("/{identity}", responses=refusals(404))
def withdraw_token(identity: str, service: At, _: OwnerHere) -> dict[str, Any]:
    """The token is good for nothing from now on."""
    if not (identity.isascii() and identity.isalnum() and len(identity) <= 32):
        raise nothing_here()
    return withdraw(service.access, identity).to_json()
