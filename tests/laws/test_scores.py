"""Range and sensitivity of a quality score: Propositions 1 and 2 of [DDR20]."""

import numpy as np
import pytest

import farthing as fa


def _tables(number=60):
    rng = np.random.default_rng(8)
    for _ in range(number):
        rows, columns = int(rng.integers(2, 7)), int(rng.integers(1, 6))
        table = rng.integers(-20, 20, (rows, columns)).astype(float)
        pairs = [
            (int(a), int(b))
            for a, b in rng.integers(0, rows, (int(rng.integers(1, 8)), 2))
            if a != b
        ]
        if pairs:
            yield rng, table, pairs


def _range(table, pairs):
    """sup over neighbours and outcomes of u(x,y) − u(x′,y) − u(x,y′) + u(x′,y′), as defined."""
    return max(
        table[a][y] - table[b][y] - table[a][z] + table[b][z]
        for pair in pairs
        for a, b in (pair, pair[::-1])
        for y in range(table.shape[1])
        for z in range(table.shape[1])
    )


def test_the_definition():
    for _, table, pairs in _tables():
        bounds = fa.score_bounds(table, pairs)
        assert bounds.range == _range(table, pairs)
        assert bounds.sensitivity == max(np.max(np.abs(table[a] - table[b])) for a, b in pairs)
        assert bounds.scale == bounds.range


def test_adding_a_function_of_the_data_changes_nothing():
    for rng, table, pairs in _tables():
        shifted = table + rng.integers(-50, 50, (len(table), 1))
        assert fa.score_bounds(shifted, pairs).range == fa.score_bounds(table, pairs).range


def test_the_range_is_at_most_twice_the_sensitivity():
    for _, table, pairs in _tables():
        bounds = fa.score_bounds(table, pairs)
        assert bounds.range <= 2 * bounds.sensitivity


def test_for_monotone_scores_nothing_is_lost():
    """Counts: one unit more raises every score or leaves it; some outcome does not move."""
    rng = np.random.default_rng(9)
    for _ in range(40):
        base = rng.integers(0, 9, 5).astype(float)
        raised = base + np.append(rng.integers(0, 4, 4), 0)
        bounds = fa.score_bounds([base, raised], [(0, 1)])
        assert bounds.monotone
        assert bounds.range == bounds.sensitivity
        assert "Prop. 1" in bounds.applies


def test_a_monotone_score_never_has_a_larger_range_than_sensitivity():
    for _, table, pairs in _tables():
        bounds = fa.score_bounds(table, pairs)
        if bounds.monotone:
            assert bounds.range <= bounds.sensitivity


def test_the_example_of_the_paper():
    """u(x, y) = x + y and u′ = 11x + y: sensitivity 1 and 11, the same mechanism."""
    plain = fa.score_bounds([[0, 1], [1, 2]], [(0, 1)])
    shifted = fa.score_bounds([[0, 1], [11, 12]], [(0, 1)])
    assert (plain.sensitivity, shifted.sensitivity) == (1.0, 11.0)
    assert plain.range == shifted.range == 0.0


def test_the_exponential_mechanism_scaled_by_the_range_is_bounded_range():
    """Proposition 2 on random tables: all log ratios within ε of each other, and 0 among them."""
    for rng, table, pairs in _tables():
        bounds = fa.score_bounds(table, pairs)
        if bounds.range == 0:
            continue
        epsilon = float(rng.uniform(0.1, 3))
        logits = epsilon * table / bounds.scale
        logs = logits - np.log(
            np.sum(np.exp(logits - logits.max(1, keepdims=True)), 1, keepdims=True)
        )
        logs -= logits.max(1, keepdims=True)
        for a, b in pairs:
            loss = logs[a] - logs[b]
            assert loss.max() - loss.min() <= epsilon * (1 + 1e-12)
            assert loss.min() <= 1e-12
            assert loss.max() >= -1e-12


def test_a_score_given_as_a_function():
    """Counting: datasets are sets of users, the score is how many chose an outcome."""
    votes = {"ann": "tea", "bob": "tea", "eve": "milk"}
    datasets = [frozenset(s) for s in ([], ["ann"], ["bob"], ["ann", "bob"], ["ann", "eve"], votes)]
    bounds = fa.score_bounds_of(
        lambda data, outcome: sum(votes[user] == outcome for user in data),
        datasets,
        ["tea", "milk", "water"],
        larger_by_one=lambda x, y: x < y and len(y) == len(x) + 1,
    )
    assert bounds == fa.ScoreBounds(sensitivity=1.0, range=1.0, monotone=True)


@pytest.mark.parametrize(
    ("table", "pairs", "message"),
    [
        ([[1.0, float("nan")], [0.0, 1.0]], [(0, 1)], "finite"),
        ([[1.0, float("inf")], [0.0, 1.0]], [(0, 1)], "finite"),
        ([[1.0], [2.0]], [], "at least one pair"),
        ([[1.0], [2.0]], [(0, 2)], "row numbers"),
        ([[1.0], [2.0]], [(-1, 0)], "row numbers"),
        ([1.0, 2.0], [(0, 1)], "table"),
        ([[], []], [(0, 1)], "at least one outcome"),
        ([[1.0, 2.0], [3.0]], [(0, 1)], "table"),
        ([["a"], ["b"]], [(0, 1)], "table of numbers"),
    ],
)
def test_bad_tables(table, pairs, message):
    with pytest.raises(fa.InvalidInput, match=message):
        fa.score_bounds(table, pairs)
