"""Numbers from released numbers: intervals that hold, and what a SELECT computes from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.answer import Answer
from farthing.engine.arithmetic import Draw, Number, total
from farthing.engine.session import Batch, Question
from farthing.errors import InvalidInput
from farthing.mechanisms.counts.unknown_counts import intervals_after
from farthing.mechanisms.noise.discrete import (
    CoordinateNoise,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
)
from farthing.mechanisms.noise.rounded_gaussian import RoundedGaussianNoise
from farthing.mechanisms.noise.weighted_sums import half_width, outside

LAPLACE = DiscreteLaplaceNoise(Fraction(8))
ROUNDED = RoundedGaussianNoise(Fraction(9))
NARROW = DiscreteLaplaceNoise(Fraction(3, 2))
GAUSSIAN = DiscreteGaussianNoise(Fraction(36))


def drawn(noise: CoordinateNoise, size: int, seed: int) -> np.ndarray:
    """The same law, from a fixed seed."""
    rng = np.random.default_rng(seed)
    if isinstance(noise, DiscreteLaplaceNoise):
        chance = -math.expm1(-1 / float(noise.scale))
        return np.asarray(rng.geometric(chance, size) - rng.geometric(chance, size))
    if isinstance(noise, DiscreteGaussianNoise):
        sigma = math.sqrt(noise.sigma_squared)
        values = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
        weights = np.exp(-(values**2) / (2 * sigma**2))
        return np.asarray(rng.choice(values, size, p=weights / weights.sum()))
    return np.rint(rng.normal(0, float(noise.deviation), size))


# -- the law of weighted sums -----------------------------------------------------------------

SUMS: list[list[tuple[float, CoordinateNoise, int]]] = [
    [(1, LAPLACE, 1), (-1, LAPLACE, 1)],
    [(0.9, LAPLACE, 1), (-0.1, LAPLACE, 9)],
    [(1, LAPLACE, 1), (2, NARROW, 1), (-1, ROUNDED, 1)],
    [(1, LAPLACE, 1), (0.001, LAPLACE, 1)],
    [(1, NARROW, 100)],
    [(1, GAUSSIAN, 1), (-0.4, ROUNDED, 3)],
    [(1.0, NARROW, 1), (0.9, NARROW, 1)],
]


@pytest.mark.parametrize("terms", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_half_widths_of_weighted_sums(
    terms: list[tuple[float, CoordinateNoise, int]], confidence: float
) -> None:
    """Against 10⁵ sums of the noise itself: as often as it says, and not much more."""
    width = half_width(terms, confidence)
    sums = np.zeros(100_000)
    for seed, (weight, noise, times) in enumerate(terms):
        sums += sum(weight * drawn(noise, sums.size, 97 * seed + i) for i in range(times))
    held = float((np.abs(sums) <= width).mean())
    error = 4 * math.sqrt(confidence * (1 - confidence) / sums.size)
    assert held >= confidence - error
    assert held <= confidence + error + 0.6 * (1 - confidence)
    assert outside(terms, width * 1.001) <= 1 - confidence


def test_nothing_is_certain() -> None:
    assert half_width([], 0.95) == 0
    assert half_width([(1.0, LAPLACE, 1)], 0.95) == LAPLACE.half_width(0.95)
    assert outside([(1.0, LAPLACE, 1)], 0.0) == 1
    assert outside([], 0.0) == 0


# -- coverage of what is computed --------------------------------------------------------------


def coverage(
    make: Callable[[Sequence[Number]], Number | None],
    noise: CoordinateNoise,
    true: Sequence[float],
    times: int = 1,
    trials: int = 600,
) -> float:
    """How often the interval of a computed number holds that of the true ones."""
    truth = make([Number(one) for one in true])
    assert truth is not None
    noises = [drawn(noise, trials * times, 7 * i).reshape(trials, times) for i in range(len(true))]
    held = 0
    for trial in range(trials):
        numbers = [
            Number(one + float(draws[trial].mean()), {Draw(i, noise, times): 1.0})
            for i, (one, draws) in enumerate(zip(true, noises, strict=True))
        ]
        made = make(numbers)
        assert made is not None
        low, high = made.interval(0.95)
        held += low <= truth.value <= high
    return held / trials


COMPUTED: dict[str, tuple[Callable[[Sequence[Number]], Number | None], list[float]]] = {
    "a difference": (lambda x: x[0] - x[1], [300, 200]),
    "a share": (lambda x: x[0] / total(x), [300, 500, 200]),
    "a small share": (lambda x: x[0] / total(x), [10, 900, 200]),
    "a rate": (lambda x: (x[1] - x[0]) / x[0], [300, 200]),
    "a ratio of other sums": (lambda x: (x[0] - x[1]) / (x[2] + x[3]), [400, 90, 300, 150]),
    "shares compared": (
        lambda x: quotient(x[0], total(x)) - quotient(x[1], total(x)),
        [300, 200, 90],
    ),
    "ratios compared": (
        lambda x: quotient(x[0], x[1]) - quotient(x[2], x[3]),
        [300, 500, 200, 400],
    ),
}


def quotient(one: Number, other: Number) -> Number:
    found = one / other
    assert found is not None
    return found


@pytest.mark.parametrize("noise", [LAPLACE, ROUNDED], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("computed", COMPUTED)
def test_intervals_hold(computed: str, noise: CoordinateNoise) -> None:
    """600 trials of one seed: 0.95 ± 3 deviations, and ½ step in what is discrete."""
    make, true = COMPUTED[computed]
    assert 0.923 <= coverage(make, noise, true) <= 0.98


def test_the_mean_of_several_draws() -> None:
    make, true = COMPUTED["a share"]
    assert 0.923 <= coverage(make, LAPLACE, true, times=4, trials=300) <= 0.98


@pytest.mark.parametrize("noise", [LAPLACE, ROUNDED], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("true", [(40, 300), (90, 100), (300, 310)])
def test_what_reached_a_threshold(noise: CoordinateNoise, true: tuple[int, int]) -> None:
    """Differences and shares of labels that were shown because of their noise."""
    least, held, shared, trials = 60, 0, 0, 0
    draws = [drawn(noise, 20_000, 11 + i) for i in range(2)]
    for pair in zip(*draws, strict=True):
        shown = [int(one + z) for one, z in zip(true, pair, strict=True)]
        if min(shown) < least or trials == 500:
            continue
        trials += 1
        numbers = [
            Number.ranged(v, lambda at, v=v: intervals_after(noise, least, [v], at)[0], [i])
            for i, v in enumerate(shown)
        ]
        low, high = (numbers[0] - numbers[1]).interval(0.95)
        held += low <= true[0] - true[1] <= high
        low, high = quotient(numbers[0], total(numbers)).interval(0.95)
        shared += low <= true[0] / sum(true) <= high
    assert trials > 100
    assert held / trials >= 0.92
    assert shared / trials >= 0.92


def test_narrower_than_the_two_put_together() -> None:
    one, other = (Number(300.0, {Draw(i, LAPLACE): 1.0}) for i in range(2))
    low, high = (one - other).interval(0.95)
    apart = sum(high - low for low, high in (n.interval(0.95) for n in (one, other)))
    assert high - low < 0.75 * apart
    low, high = quotient(one, one + other).interval(0.95)
    (a, b), (c, d) = one.interval(0.95), (one + other).interval(0.95)
    assert high - low < 0.75 * (b / c - a / d)


def test_what_is_shared_is_not_counted_twice() -> None:
    one = Number(300.0, {Draw(0, LAPLACE): 1.0})
    assert (one - one) == Number(0.0)
    assert quotient(one, one).interval(0.95) == pytest.approx((1, 1), abs=1e-5)
    ranged = Number.ranged(3.0, lambda _: (2.0, 5.0), ["x"])
    assert (ranged + ranged).interval(0.95) == (4, 10)
    other = Number.ranged(3.0, lambda _: (2.0, 5.0), ["x"])
    assert (ranged + other).interval(0.95) == (4, 10)  # the same draws: both ends at once
    apart = Number.ranged(3.0, lambda _: (2.0, 5.0), ["y"])
    assert (ranged + apart).interval(0.95) == pytest.approx((6 - 2**0.5, 6 + 8**0.5))
    assert (ranged * apart).interval(0.95) == (4, 25)


def test_many_parts_are_looked_at_in_few() -> None:
    """The same interval, whether the sum has many parts or few; also where they share draws."""
    parts = [Number(100.0 + i, {Draw(i, ROUNDED, 2): 1.0}) for i in range(12)]
    ranges = [Number.ranged(50.0, lambda _: (40.0, 65.0), [("r", i)]) for i in range(12)]
    for listed in (parts, ranges, parts + ranges):
        whole = total(listed)
        few = whole.in_few_parts(listed[0], 0.95)
        assert len(few.weights) <= 3
        assert few.interval(0.95) == pytest.approx(whole.interval(0.95), rel=1e-6)
        there = listed[0] - few.times(0.1)
        assert there.interval(0.95) == pytest.approx((listed[0] - whole.times(0.1)).interval(0.95))
    rounded = parts[0].mapped(round)
    whole = total(parts)
    assert whole.in_few_parts(rounded, 0.95) is whole


def test_a_divisor_that_may_be_nothing() -> None:
    one, tiny = Number(3.0, {Draw(0, LAPLACE): 1.0}), Number(2.0, {Draw(1, LAPLACE): 1.0})
    assert quotient(one, tiny).interval(0.95) == (-math.inf, math.inf)
    assert one / Number(0.0) is None
    assert quotient(one, Number(2.0)).value == 1.5


# -- answers -----------------------------------------------------------------------------------

REGIONS = ("north", "south", "west")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place: Path = tmp_path_factory.mktemp("derived")
    size = 3000
    rows = pa.table(
        {
            "member": list(range(size)),
            "region": [REGIONS[i % 3] if i % 4 else "north" for i in range(size)],
            "town": [f"t{i % 7}" for i in range(size)],
            "sex": [("F", "M")[i % 5 == 0] for i in range(size)],
            "amount": [i % 100 for i in range(size)],
        }
    )
    schema = fa.Schema(
        (
            fa.Column("member", "integer"),
            fa.Column("region", "text", categories=REGIONS),
            fa.Column("town", "text"),
            fa.Column("sex", "text", categories=("F", "M")),
            fa.Column("amount", "integer", lower=0, upper=100),
        )
    )
    with fa.open(
        rows,
        unit="member",
        schema=schema,
        dataset="visits",
        ledger=str(place / "budget.db"),
        epsilon=40,
        delta=1e-6,
        limits=fa.Limits(contribution_limit=1, per_key_limit=1),
    ) as session:
        yield session


def test_shares_of_an_answer(data: Any) -> None:
    shares = data.histogram("region").run().shares()
    assert shares.labels == REGIONS
    assert sum(shares["share"]) == pytest.approx(1)
    truth = (0.5, 0.25, 0.25)
    for value, one in zip(shares["share"], truth, strict=True):
        assert value == pytest.approx(one, abs=0.05)
    assert shares.to_arrow().column_names == ["region", "share", "lower", "upper"]
    assert "share" in str(shares)
    assert "<table>" in shares._repr_html_()


def test_differences_and_changes(data: Any) -> None:
    counts = data.histogram("sex").run()
    women = counts.difference("F", "M")
    assert women.value == counts.counts[0] - counts.counts[1]
    low, high = women.interval
    assert high - low < 4 * counts.half_width
    with pytest.raises(InvalidInput, match="no label X"):
        counts.difference("F", "X")
    changed = counts.change(relative=True)
    assert changed.labels == ("M",)
    assert changed["rate of change"][0] == pytest.approx(counts.counts[1] / counts.counts[0] - 1)
    means = data.mean("amount", by="sex").run()
    low, high = means.difference("F", "M").interval
    widths = [b - a for a, b in means.intervals]
    assert max(widths) <= high - low < sum(widths)


def test_one_answer_over_another(data: Any) -> None:
    sums, counts = data.sum("amount", by="region").run(), data.histogram("region").run()
    each = fa.ratio(sums, counts)
    assert each["ratio"] == pytest.approx(
        [s / n for s, n in zip(sums.counts, counts.counts, strict=True)]
    )
    of_all = fa.ratio(counts, data.count().run())
    assert len(of_all) == 3
    with pytest.raises(InvalidInput, match="label by label"):
        fa.ratio(counts, data.histogram("sex").run())
    assert fa.difference(counts, counts)["difference"] == (0, 0, 0)
    with pytest.raises(InvalidInput, match="nothing to compute with"):
        data.top_k("region", 2, counts=False).run().shares()


def test_old_releases_are_combined_with_care(data: Any) -> None:
    """A release that does not say its noise still has intervals, which are wider together."""
    counts = data.histogram("region").run()
    old = replace(counts, guarantees=None, drawn=None)
    again = Answer.from_json(old.to_json(), old.query, remaining=old.remaining)
    new, kept = (a.difference("north", "west").interval for a in (counts, again))
    assert kept[0] <= new[0] + 1
    assert kept[1] >= new[1] - 1
    assert again.shares().columns[0].intervals is not None


def test_what_is_kept_says_the_noise(data: Any) -> None:
    counts = data.histogram("region").run()
    told = counts.to_json()
    assert set(told["guarantees"]) == {"count"}
    again = Answer.from_json(told, counts.query, remaining=counts.remaining)
    assert again.shares() == counts.shares()
    assert data.histogram("region").run().drawn == counts.drawn


def test_labels_that_were_found(data: Any) -> None:
    found = data.histogram("town").run()
    shares = found.shares()
    assert "Shares are of the labels that are shown." in shares.notes
    (low, high), *_ = shares.columns[0].intervals
    assert 0 <= low < 1 / 7 < high <= 1


# -- SQL ---------------------------------------------------------------------------------------


def test_arithmetic_having_order_and_limit(data: Any) -> None:
    batch = data.sql(
        "SELECT region, SUM(amount) / COUNT(*) AS each, 100 * COUNT(*) / SUM(COUNT(*)) AS part "
        "FROM visits GROUP BY region HAVING COUNT(*) > 100 AND region <> 'south' "
        "ORDER BY 3 DESC LIMIT 5"
    )
    assert isinstance(batch, Batch)
    assert list(batch.queries) == ["SUM(amount)", "COUNT(*)"]
    answers = batch.run()
    table = answers.table
    assert table.labels == ("north", "west")
    sums, counts = (dict(zip(a.labels, a.counts, strict=True)) for a in answers.values())
    assert table["each"] == pytest.approx([sums[r] / counts[r] for r in table.labels])
    whole = sum(counts.values())
    assert table["part"] == pytest.approx([100 * counts[r] / whole for r in table.labels])
    assert "2 of 3 rows are shown." in table.notes
    assert answers.to_arrow().column_names == [
        *("region", "each", "each_lower", "each_upper", "part", "part_lower", "part_upper"),
    ]
    assert "each" in str(answers)
    assert "<table>" in answers._repr_html_()


def test_the_price_is_that_of_the_numbers(data: Any) -> None:
    plain = data.sql("SELECT sex, COUNT(*) FROM visits WHERE amount < 50 GROUP BY sex")
    assert isinstance(plain, Question)
    more = data.sql(
        "SELECT sex, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM visits "
        "WHERE amount < 50 GROUP BY sex ORDER BY sex DESC"
    )
    assert more.plan().price == plain.plan().price
    answers = more.plan().run()
    assert answers.table.labels == ("M", "F")
    assert sum(answers.table["pct"]) == pytest.approx(100, abs=0.2)
    assert more.plan().known.table.columns == answers.table.columns
    assert plain.run().cached


def test_filters_of_one_function(data: Any) -> None:
    text = "SELECT COUNT(*) FILTER (WHERE sex = 'F') AS women, COUNT(*) AS all_ FROM visits"
    batch = data.sql(f"{text} WHERE amount < 50")
    assert batch.view is None
    counts = batch.run()
    assert counts["women"].value == pytest.approx(1200, abs=60)
    assert counts.to_arrow().num_rows == 1
    part = data.sql(
        "SELECT COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) AS part FROM visits WHERE amount < 50"
    ).run()
    assert part.table.value == pytest.approx(0.8, abs=0.05)
    low, high = part.table.interval
    assert low < 0.8 < high


def test_several_functions_are_one_table(data: Any) -> None:
    answers = data.sql(
        "SELECT sex, COUNT(*) AS n, AVG(amount) AS mean FROM visits GROUP BY sex"
    ).run()
    assert answers.view is None
    table = answers.to_arrow()
    assert table.column_names == [
        *("sex", "n", "n_lower", "n_upper", "mean", "mean_lower", "mean_upper"),
    ]
    assert table["n"].to_pylist() == list(answers["n"].counts)
    assert table["mean_lower"].to_pylist() == [low for low, _ in answers["mean"].intervals]
    assert str(answers).count("│ F") == 1
    mixed = data.batch({"n": data.histogram("sex"), "m": data.histogram("region")}).run()
    with pytest.raises(InvalidInput, match="different keys"):
        mixed.to_arrow()


def test_rows_that_were_chosen_by_their_numbers(data: Any) -> None:
    """Their intervals hold for all rows together, as those of the largest counts do."""
    counts = data.histogram("region").run()
    chosen = data.sql(
        "SELECT region, COUNT(DISTINCT member) AS n FROM visits GROUP BY region "
        "HAVING COUNT(DISTINCT member) > 0 ORDER BY region"
    ).run()
    assert chosen["n"].cached
    wide = [high - low for low, high in chosen.table.columns[0].intervals]
    assert min(wide) > 2 * counts.half_width
    assert any("all rows together" in note for note in chosen.table.notes)


def test_top_k_stays_top_k(data: Any) -> None:
    text = "SELECT town, COUNT(*) FROM visits GROUP BY town ORDER BY 2 DESC LIMIT 2"
    asked = data.sql(text)
    assert isinstance(asked, Question)
    assert asked.query.kind == "top_k"


def test_missing_groups_are_missing(data: Any) -> None:
    """A label that only one of two answers shows has a number for that one alone."""
    answers = data.sql(
        "SELECT town, COUNT(*) FILTER (WHERE town = 't1') / COUNT(*) AS part FROM visits "
        "GROUP BY town"
    ).run()
    parts = dict(zip(answers.table.labels, answers.table["part"], strict=True))
    assert parts["t1"] == pytest.approx(1, abs=0.3)
    assert parts["t2"] is None
    assert "–" in str(answers)


def test_a_rollup(data: Any) -> None:
    """Its numbers share their draws, and its first one is the whole."""
    told = data.rollup(["region", "sex"]).run()
    shares = told.shares()
    assert shares["share"][0] == 1
    parts = [s for label, s in zip(shares.labels, shares["share"], strict=True) if len(label) == 1]
    assert sum(parts) == pytest.approx(1, abs=0.01)
    assert shares.to_arrow()["sex"].to_pylist()[0] is None
    rows = data.sql(
        "SELECT region, sex, COUNT(*) / 2 AS half FROM visits GROUP BY ROLLUP (region, sex) "
        "HAVING region IS NOT NULL ORDER BY half DESC"
    ).run()
    assert len(rows.table) == len(told) - 1
    assert "(all)" in str(rows)
