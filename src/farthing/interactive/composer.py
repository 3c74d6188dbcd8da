"""Several conversations at once are one conversation: COMP of [Lyu22]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from farthing.errors import InvalidInput, require_count
from farthing.interactive.protocol import (
    Conversation,
    ConversationOver,
    Drawing,
    InteractiveMechanism,
    Json,
    require_keys,
)
from farthing.mechanisms.protocol import Uses

#: One state per part.
States: TypeAlias = tuple[Any, ...]
Part: TypeAlias = InteractiveMechanism[Any, Any, Any]
#: A conversation with any mechanism.
OpenConversation: TypeAlias = Conversation[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Interactive mechanisms whose questions are interleaved as the analyst likes.

    The question (i, x) is x for part i, counted from 0. A part sees its own questions and answers
    only. What all of it costs is what the parts cost: interleaving gains nothing
    (docs/theory/concurrency.md). It is an interactive mechanism itself, so it nests.
    """

    parts: Sequence[Part]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise InvalidInput("at least one interactive mechanism is needed, got none")
        object.__setattr__(self, "parts", parts)

    @property
    def guarantees(self) -> Uses:
        """The items of all parts."""
        return tuple(item for part in self.parts for item in part.guarantees)

    def begin(self) -> Drawing[States]:
        """Open every part."""
        states = []
        for part in self.parts:
            states.append((yield from part.begin()))
        return tuple(states)

    def reply(self, state: States, question: tuple[int, Any], /) -> Drawing[tuple[Any, States]]:
        """Pass the question to its part."""
        index, inner = question
        if require_count("the number of a part", index) >= len(self.parts):
            raise InvalidInput(f"there are {len(self.parts)} parts, counted from 0; got {index}")
        part = self.parts[index]
        if part.halted(state[index]):
            raise ConversationOver(f"nothing more can be asked: part {index} is over")
        answer, after = yield from part.reply(state[index], inner)
        return answer, (*state[:index], after, *state[index + 1 :])

    def halted(self, state: States, /) -> bool:
        """When every part has."""
        return all(p.halted(inner) for p, inner in zip(self.parts, state, strict=True))

    def state_to_json(self, state: States, /) -> Json:
        """The states of the parts in order."""
        pairs = zip(self.parts, state, strict=True)
        return {"parts": [part.state_to_json(inner) for part, inner in pairs]}

    def state_from_json(self, data: Json, /) -> States:
        """The same, checked."""
        require_keys(data, "parts")
        stored = data["parts"]
        if not isinstance(stored, list) or len(stored) != len(self.parts):
            raise InvalidInput(f"a stored conversation must have {len(self.parts)} parts")
        pairs = zip(self.parts, stored, strict=True)
        return tuple(part.state_from_json(inner) for part, inner in pairs)
