"""Every kind of conversation, a line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farthing.engine.conversation_kinds.base import ConversationKind, Opens
from farthing.engine.conversation_kinds.guess import GuessWatch
from farthing.engine.conversation_kinds.threshold import ThresholdWatch
from farthing.errors import InvalidInput, require_choice


class ConversationKinds:
    """What can be opened, as methods of a session."""

    watch = Opens(ThresholdWatch)
    watch_guesses = Opens(GuessWatch)


#: The kinds by what a number is compared with, which is the word for them in plain data.
CONVERSATIONS: Mapping[str, type[ConversationKind]] = {
    one.kind.against: one.kind for one in vars(ConversationKinds).values() if isinstance(one, Opens)
}


def conversation_from(data: Mapping[str, Any]) -> ConversationKind:
    """A conversation from its plain data."""
    kind = require_choice("kind", data.get("kind"), CONVERSATIONS)
    return CONVERSATIONS[kind].from_json(data)


def kind_run_by(mechanism: object) -> type[ConversationKind]:
    """The kind that a mechanism was opened by."""
    for kind in CONVERSATIONS.values():
        if isinstance(mechanism, kind.runs):
            return kind
    raise InvalidInput("this conversation was not opened about numbers of a table")
