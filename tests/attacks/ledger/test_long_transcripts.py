"""Questions that are answered with no cost nothing, and their transcript was told whole: a hundred
thousand of them made the service build an answer of gigabytes, as often as it was asked for."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest

from farthing.interactive import Exceeds
from farthing.ledger import DurableConversation, Ledger
from farthing.ledger.roles import conversations
from tests.ledger.conftest import open_talk

LONG = "x" * 1000


@pytest.fixture
def talk(ledger: Ledger) -> DurableConversation:
    return open_talk(ledger)


def pages(talk) -> list[list[int]]:
    found, after = [], 0
    while after is not None:
        page, following = talk.said_after(after)
        assert following is None or following > after
        found.append([one.asked["n"] for one in page])
        after = following
    return found


def test_pages_are_the_transcript(talk, monkeypatch) -> None:
    monkeypatch.setattr(conversations, "PAGE_SIZE", 5000)
    asked = [({"n": n, "of": LONG}, Exceeds(0, 10**9)) for n in range(40)]
    for start, end in pairwise([0, 1, 2, 3, 13, 14, 16, 18, 20, 22, 30, 40]):
        talk.ask_many(asked[start:end])
    told = pages(talk)
    assert list(chain(*told)) == [one.asked["n"] for one in talk.transcript()] == list(range(40))
    assert max(map(len, told)) == 10, "one turn alone, and none beside it"
    assert len(told) > 6


def test_short_turns_are_few_on_a_page(talk, monkeypatch) -> None:
    monkeypatch.setattr(conversations, "MOST_ON_A_PAGE", 4)
    for n in range(9):
        talk.ask({"n": n}, Exceeds(0, 10**9))
    assert pages(talk) == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]


def test_nothing_was_said(talk) -> None:
    assert talk.said_after(0) == ([], None)
