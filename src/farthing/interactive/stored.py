"""Conversations as plain data: how mechanisms are written, and how open states are sealed.

A sealed state has two halves. The secret half holds the noise. The public half is a commitment: a
digest of the secret half, with which anyone can check later that the noise is still the one that
was drawn. Noise is a small whole number, so trying all values would undo a plain digest; every
seal therefore has 256 random bits of its own.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

from farthing.canonical import digest
from farthing.errors import InvalidInput
from farthing.interactive.protocol import (
    Concurrent,
    Conversation,
    Json,
    OpenConversation,
    Part,
    require_keys,
)
from farthing.interactive.running_total import RunningTotal
from farthing.interactive.sparse_vector import GuessAndCheck, SparseVector

Kind: TypeAlias = type[SparseVector] | type[GuessAndCheck] | type[RunningTotal]
#: The name in stored data → the mechanism. A new mechanism is one line here.
KINDS: dict[str, Kind] = {
    "sparse_vector": SparseVector,
    "guess_and_check": GuessAndCheck,
    "running_total": RunningTotal,
}

#: Rows may change between the questions of a conversation with these (docs/theory/concurrency.md,
#: Theorem 6; docs/theory/correlated-noise.md, Theorem 2), also if updates depend on releases. A
#: mechanism that is not listed was proved for a fixed table, and must not go on after a change.
COVERED: tuple[Kind, ...] = (SparseVector, GuessAndCheck, RunningTotal)
_SALT_BYTES = 32


def mechanism_to_json(mechanism: Part) -> Json:
    """Its name and its parameters."""
    if isinstance(mechanism, Concurrent):
        return {"concurrent": [mechanism_to_json(part) for part in mechanism.parts]}
    for name, kind in KINDS.items():
        if type(mechanism) is kind:
            return {name: {key: getattr(mechanism, key) for key in _parameters(kind)}}
    raise InvalidInput(f"{type(mechanism).__name__} has no name in stored data")


def mechanism_from_json(data: Json) -> Part:
    """Back from plain data; the parameters are checked like any others."""
    if not isinstance(data, dict) or len(data) != 1:
        raise InvalidInput("a stored mechanism must have one key, its name")
    (name, stored), *_ = data.items()
    if name == "concurrent":
        if not isinstance(stored, list):
            raise InvalidInput("a stored concurrent mechanism must be a list of mechanisms")
        return Concurrent(tuple(mechanism_from_json(part) for part in stored))
    if name not in KINDS:
        known = ", ".join((*KINDS, "concurrent"))
        raise InvalidInput(f"a stored mechanism must be one of {known}, got {name!r}")
    require_keys(stored, *_parameters(KINDS[name]))
    parameters: dict[str, Any] = stored
    return KINDS[name](**parameters)


def _parameters(kind: Kind) -> list[str]:
    return [parameter.name for parameter in fields(kind) if parameter.init]


def covers_growing_rows(mechanism: Part) -> bool:
    """Whether a conversation with this mechanism may go on when the rows have changed."""
    if isinstance(mechanism, Concurrent):
        return all(map(covers_growing_rows, mechanism.parts))
    return type(mechanism) in COVERED


@dataclass(frozen=True, slots=True)
class SealedState:
    """`secret` goes where no export, statement or analyst reads; `commitment` may be shown."""

    secret: Json = field(repr=False)
    commitment: str


def seal(conversation: OpenConversation) -> SealedState:
    """The conversation as it is now. Sealing it again gives another commitment."""
    secret = {
        "mechanism": mechanism_to_json(conversation.mechanism),
        "conversation": conversation.to_json(),
        "salt": secrets.token_hex(_SALT_BYTES),
    }
    return SealedState(secret, digest(secret))


def unseal(sealed: SealedState) -> OpenConversation:
    """The conversation where it was left; InvalidInput if it is not the one committed to."""
    require_keys(sealed.secret, "mechanism", "conversation", "salt")
    if not hmac.compare_digest(digest(sealed.secret), sealed.commitment):
        raise InvalidInput("a stored conversation is not the one that was committed to")
    mechanism = mechanism_from_json(sealed.secret["mechanism"])
    return Conversation.from_json(mechanism, sealed.secret["conversation"])
