"""What a limit left out is counted, priced, and told beside the answer."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine import Answer, query_from
from farthing.engine.answer import Loss
from farthing.engine.kinds.counts import LossQuery
from farthing.errors import InvalidInput
from farthing.ledger import Ledger, verify

#: 600 units with one label, 200 with five.
UNITS = [*((u, 0) for u in range(600)), *product(range(600, 800), range(5))]
ROWS = pa.table({"member": [u for u, _ in UNITS] * 2, "k": [k for _, k in UNITS] * 2})


def test_the_number_is_that_of_the_pairs_above(opened) -> None:
    data = opened(ROWS)
    for limit, most, true in ((1, None, 200 * 3), (1, 5, 800), (2, None, 600), (3, 4, 200)):
        answer = data.loss("k", contribution_limit=limit, most=most).run()
        assert abs(answer.value - true) <= 2 * answer.half_width, (limit, most)
        assert answer.half_width < 200
    some = data.loss("k", contribution_limit=1, categories=[1, 2, 3]).run()
    assert abs(some.value - 400) <= 2 * some.half_width
    with pytest.raises(InvalidInput, match="nothing can be above"):
        data.loss("k", contribution_limit=3, categories=[1, 2, 3])
    asked = {"kind": "loss", "by": ["k"], "contribution_limit": 2}
    assert query_from(json.loads(json.dumps(query_from(asked).to_json()))) == query_from(asked)


def test_one_unit_moves_it_by_no_more_than_the_noise_is_for() -> None:
    for limit, most in product(range(1, 4), range(2, 6)):
        if most > limit:
            query = LossQuery("k", contribution_limit=limit, most=most)
            moved = [max(min(labels, most) - limit, 0) for labels in range(12)]
            assert max(moved) == query.sensitivity


@pytest.mark.parametrize("categories", [None, [0, 1, 2, 3, 4]])
def test_the_answer_says_what_share_was_above(opened, tmp_path, categories) -> None:
    """1600 pairs, of which 800 are above a limit of 1."""
    data = opened(ROWS)
    asked = data.histogram("k", categories=categories, contribution_limit=1, measure_loss=True)
    plain = data.histogram("k", categories=categories, contribution_limit=1)
    one = data.count().plan().price
    plan = asked.plan()
    assert plan.price.farthings == plain.plan().price.farthings + one.farthings
    assert "loss" in str(plan)
    before = data.remaining()
    answer = asked.run()
    assert before.farthings - data.remaining().farthings == plan.price.farthings
    assert answer.price == plan.price
    loss = answer.loss
    assert loss is not None
    assert loss.share_interval is not None
    low, high = loss.share_interval
    if categories is not None:
        assert low <= 600 / 1400 <= high  # of each unit four labels were looked at
        assert high - low < 0.2
    assert "of the pairs" in str(answer)
    assert "were above the limit" in str(answer)
    assert "were above the limit" in answer._repr_html_()
    again = asked.run()
    assert again.cached
    assert again.loss == loss
    data_again = json.loads(json.dumps(answer.to_json()))
    assert Answer.from_json(data_again, answer.query, remaining=answer.remaining).loss == loss
    with Ledger.open(tmp_path / "budget.db") as ledger:
        assert verify(ledger.reader())[0].entries > 3


def test_in_batches_and_registered_lists(opened, tmp_path) -> None:
    data = opened(ROWS)
    asked = data.histogram("k", contribution_limit=2, measure_loss=True)
    both = data.batch({"a": asked, "b": data.count()})
    assert both.plan().price.farthings == asked.plan().price.farthings + 4
    found = both.run()
    assert set(found) == {"a", "b"}
    assert found["a"].loss is not None
    assert found["b"].loss is None
    assert both.run()["a"].loss == found["a"].loss
    with fa.Desk.open(tmp_path / "budget.db") as desk:
        desk.register("events", "monday", dict(both.queries), analyst="analyst")
    assert both.run(registered="monday", again=True)["a"].loss is not None
    for first in (asked, data.count()):
        with pytest.raises(InvalidInput, match="cannot be called"):
            data.batch({"a": first, "a above the limit": data.count()}).plan()


def test_where_nothing_can_be_above(opened) -> None:
    data = opened(ROWS)
    whole = data.histogram("k", categories=[0, 1], contribution_limit=2, measure_loss=True).run()
    assert whole.loss is None
    with pytest.raises(InvalidInput, match="measure_loss needs"):
        data.top_k("k", 2, measure_loss=True).plan()
    one = data.top_k("k", 2, contribution_limit=1, measure_loss=True).run()
    assert one.loss is not None
    assert one.loss.share is None  # the labels that are shown are not all of them
    assert "pairs (" in str(one)


def test_none_above_is_said_with_its_error() -> None:
    loss = Loss.beside(-12, (-40, 16), (1000.0, (950, 1050)), 8)
    assert loss.share == 0
    assert loss.share_interval == (0, 16 / 966)
    assert loss.in_words("95%").startswith("About 0% (0.0% to 1.7% at 95%) of the pairs")
    nothing = Loss.beside(-1, (-9, -2), (-5.0, (-50, -1)), 8)
    assert nothing.share_interval == (0, 0)


def test_the_share_holds_as_often_as_it_says() -> None:
    """Sampled with the noises of two counts; one of a third of the width fails."""
    from farthing.guarantees.kinds import PureDP
    from farthing.mechanisms import Histogram, KnownCounts, Repeated
    from farthing.mechanisms.protocol import joint_level

    once = KnownCounts(coordinate=PureDP(0.1), contribution_limit=1, per_key_limit=1)
    above = KnownCounts(coordinate=PureDP(0.1), contribution_limit=1, per_key_limit=3)
    kept, lost = Histogram(range(8), [40] * 8), Histogram(["pairs"], [120])
    level, trials, held, narrow = joint_level(0.9, 2), 600, 0, 0
    for _ in range(trials):
        shown, beside = Repeated(once, 1), Repeated(above, 1)
        release, count = shown.run(kept), beside.run(lost)
        total, pairs = shown.total(release, level), beside.total(count, level)
        low, high = Loss.beside(
            count.counts[0], pairs, (sum(release.counts), total), 4
        ).share_interval
        middle, true = (low + high) / 2, 120 / 440
        held += low <= true <= high
        narrow += abs(true - middle) <= 0.3 * (high - low) / 2
    assert held / trials >= 0.9 - 4 * np.sqrt(0.09 / trials)
    assert narrow / trials < 0.9 - 4 * np.sqrt(0.09 / trials)
