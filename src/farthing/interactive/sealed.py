"""An open conversation in two halves: what is kept in secret, and what may be shown.

The secret half holds the noise. The public half is a commitment: a digest of the secret one, by
which it can be checked later that the noise is still the one that was drawn. Noise is a small whole
number, so a plain digest of it could be undone by trying; every seal therefore has 256 random bits
of its own.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from farthing.canonical import digest
from farthing.errors import InvalidInput
from farthing.interactive.composer import OpenConversation
from farthing.interactive.protocol import Conversation, Json, require_keys
from farthing.interactive.stored import mechanism_from_json, mechanism_to_json

_SALT_BYTES = 32


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
