"""A conversation that is kept in secret and committed to in public."""

from __future__ import annotations

import copy
import json

import pytest

from farthing.canonical import canonical, digest
from farthing.errors import InvalidInput
from farthing.interactive import Concurrent, Conversation, Exceeds, SparseVector, seal, unseal
from farthing.interactive.stored import SealedState

WATCH = SparseVector(positives=2, threshold_epsilon=1.0, answer_epsilon=1.0)


def test_it_comes_back_from_text() -> None:
    conversation = Conversation(Concurrent([WATCH, WATCH]))
    conversation.ask((1, Exceeds(10**6, 0)))
    sealed = seal(conversation)
    kept = SealedState(json.loads(canonical(sealed.secret)), sealed.commitment)
    again = unseal(kept)
    assert again.to_json() == conversation.to_json()
    assert again.mechanism == conversation.mechanism


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("conversation", "state", "threshold_noise"), 10**9),
        (("conversation", "state", "positives_left"), 2),
        (("conversation", "closed"), False),
        (("mechanism", "sparse_vector", "positives"), 3),
        (("salt",), "00"),
    ],
)
def test_what_was_changed_is_refused(path: tuple[str, ...], value: object) -> None:
    conversation = Conversation(WATCH)
    conversation.ask(Exceeds(10**6, 0))
    conversation.close()
    sealed = seal(conversation)
    changed = copy.deepcopy(sealed.secret)
    place = changed
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    with pytest.raises(InvalidInput, match="committed"):
        unseal(SealedState(changed, sealed.commitment))


def test_the_commitment_cannot_be_undone_by_trying_small_numbers() -> None:
    """Everything but the salt is guessable: with it the noise is found, without it not."""
    conversation = Conversation(WATCH)
    sealed = seal(conversation)

    def found(salt: str) -> bool:
        for noise in range(-60, 61):
            guess = copy.deepcopy(sealed.secret)
            guess["conversation"]["state"]["threshold_noise"] = noise
            guess["salt"] = salt
            if digest(guess) == sealed.commitment:
                return True
        return False

    assert found(sealed.secret["salt"])
    assert not found("")
    assert len(sealed.secret["salt"]) == 64
    assert seal(conversation).commitment != sealed.commitment


def test_the_text_of_a_seal_shows_the_commitment_only() -> None:
    sealed = seal(Conversation(WATCH))
    assert sealed.commitment in repr(sealed)
    assert sealed.secret["salt"] not in repr(sealed)
    assert "noise" not in repr(sealed)
