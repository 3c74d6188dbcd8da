"""The checker stands alone, bounds what it says it bounds, and proves what was certified."""

from __future__ import annotations

import ast
import json
import os
import pty
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from typer.testing import CliRunner

import farthing as fa
from farthing import checker
from farthing.canonical import digest
from farthing.cli.composition import tariff as command
from farthing.composition.tariffs.certificate import (
    ASSUMPTIONS,
    COMPUTED_BY,
    FORMAT,
    THEOREM,
    Proof,
)
from farthing.composition.tariffs.prices import _rungs
from tests.tariffs.drawn import tariffs
from tests.tariffs.strategies import best_delta, loss_of_refinement

FILE = Path(checker.__file__)
BITS = 120
STEP = Fraction(1, 16)
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
README = fa.Tariff(
    {"select": (fa.BoundedRange(0.1), 1), "count": (fa.PureDP(0.1), 4)}, farthings=400
)


def proved(certificate: fa.Certificate, **grid: object) -> checker.Proved:
    """The last row, on the grid of the certificate or another one."""
    data = certificate.to_json()
    data["grid"] = {**data["grid"], **grid}
    return checker.prove(data, Fraction(1, 10**12), lambda *_: None)


def signed(data: dict[str, object]) -> dict[str, object]:
    body = {key: value for key, value in data.items() if key != "digest"}
    return {**body, "digest": digest(body)}


def test_it_imports_the_standard_library_alone() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {
        name.split(".")[0]
        for node in found
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
    }
    assert modules <= sys.stdlib_module_names
    assert len(modules) > 5
    assert "float(" not in FILE.read_text(encoding="utf-8").split("- what a certificate states")[0]


def test_it_says_what_certificates_say() -> None:
    assert checker.FORMAT == FORMAT
    assert checker.THEOREM == THEOREM
    assert tuple(checker.ASSUMPTIONS) == ASSUMPTIONS
    assert set(COMPUTED_BY) == checker.COMPUTED_BY


def test_it_runs_alone_and_as_a_command(tmp_path: Path) -> None:
    certificate = fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 5).certify(tolerance=0.1)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    certificate.write(good)
    data = certificate.to_json()
    data["epsilon_at"][0]["upper"] *= 1 - 1e-6
    bad.write_text(json.dumps(signed(data)), encoding="utf-8")
    copy = tmp_path / "checker.py"
    copy.write_bytes(FILE.read_bytes())
    for path, code, word in ((good, 0, "checked: "), (bad, 1, "refused: epsilon = ")):
        alone = subprocess.run(
            [sys.executable, "-I", "-S", str(copy), str(path)], capture_output=True, text=True
        )
        assert (alone.returncode, alone.stderr) == (code, "")
        assert alone.stdout.startswith(word)
    assert CliRunner().invoke(command, ["check", str(good)]).exit_code == 0
    refused = CliRunner().invoke(command, ["check", str(bad)])
    assert isinstance(refused.exception, fa.NotCertified)
    missing = CliRunner().invoke(command, ["check", str(tmp_path / "none.json")])
    assert isinstance(missing.exception, fa.NotCertified)


RATIONAL = st.fractions(-40, 40, max_denominator=10**6)


@QUICK
@given(RATIONAL, st.integers(20, 300))
def test_enclosures(x: Fraction, bits: int) -> None:
    with mp.workprec(bits + 250):
        place = mpf(x.numerator) / x.denominator
        for truth, (lo, hi), wide in (
            (mp.exp(place), checker.exp(x, bits), 2),
            (mp.ncdf(-place), checker.normal_above(x, bits), 3),
            (mp.pi, checker.pi(bits), 2),
        ):
            assert lo <= truth * 2**bits <= hi <= lo + wide


def profile(guarantee: fa.Guarantee, x: Fraction) -> mpf:
    """δ of one use, by its definition."""
    place = mpf(x.numerator) / x.denominator
    match guarantee:
        case fa.PureDP(epsilon):
            response = 1 / (1 + mp.exp(-mpf(epsilon)))
            return max(mpf(0), response - mp.exp(place) * (1 - response))
        case fa.Laplace(epsilon):
            return max(mpf(0), 1 - mp.exp((place - mpf(epsilon)) / 2))
        case fa.Gaussian(sigma):
            half = 1 / (2 * mpf(sigma))
            above = mp.ncdf(half - place * sigma)
            return above - mp.exp(place) * mp.ncdf(-half - place * sigma)
        case fa.DiscreteGaussian(sigma, shift):
            spread = mpf(sigma) * shift
            weights = {z: mp.exp(-((z / spread) ** 2) / 2) for z in range(-400, 401)}
            total = mp.fsum(weights.values())
            pairs = ((weights[z], weights.get(z - shift, mpf(0))) for z in weights)
            return mp.fsum(max(mpf(0), p - mp.exp(place) * q) for p, q in pairs) / total
    raise TypeError(guarantee)


KINDS = [
    (fa.PureDP(0.7), "dp"),
    (fa.Laplace(0.7), "lap"),
    (fa.Gaussian(3.25), "gauss"),
    (fa.Gaussian(0.5), "gauss"),
    (fa.DiscreteGaussian(2.5), "dgauss"),
    (fa.DiscreteGaussian(4.0, 3), "dgauss"),
]


def item_of(guarantee: fa.Guarantee, kind: str) -> checker.Item:
    match guarantee:
        case fa.DiscreteGaussian(sigma, shift):
            values: tuple[float, ...] = (sigma, shift)
        case fa.Gaussian(sigma):
            values = (sigma,)
        case fa.PureDP(epsilon) | fa.Laplace(epsilon) | fa.BoundedRange(epsilon):
            values = (epsilon,)
    return checker.Item(kind, tuple(Fraction(value) for value in values), 1, 0)


@pytest.mark.parametrize(("guarantee", "kind"), KINDS)
def test_profiles_of_one_use(guarantee: fa.Guarantee, kind: str) -> None:
    grid = checker.Grid(STEP, 40, 5, BITS)
    (found,) = checker.profiles_of(item_of(guarantee, kind), grid)
    with mp.workdps(60):
        for place in (Fraction(0), Fraction(1, 3), Fraction(13, 20), Fraction(7, 10), Fraction(2)):
            truth = profile(guarantee, place) * 2**BITS
            assert truth - 1e-9 <= found(place) <= truth + 4


@QUICK
@given(st.fractions(1, 10**6, max_denominator=10**6), st.integers(20, 300))
def test_logarithms(y: Fraction, bits: int) -> None:
    low, high = checker.log(y, bits)
    with mp.workprec(bits + 250):
        truth = mp.log(mpf(y.numerator) / y.denominator)
        assert mpf(low.numerator) / low.denominator <= truth
        assert truth <= mpf(high.numerator) / high.denominator
    assert high - low <= Fraction(1, 1 << bits)


@pytest.mark.parametrize(("guarantee", "kind"), KINDS)
@pytest.mark.parametrize("rate", [0.01, 0.5, 0.97])
def test_profiles_of_a_sample(guarantee: fa.Guarantee, kind: str, rate: float) -> None:
    """(1 − q)Q + qP against Q and the reverse: q·v and its mirror image 1 − z + z·q·v at 1/z."""
    grid = checker.Grid(STEP, 40, 5, BITS)
    item = replace(item_of(guarantee, kind), rate=Fraction(rate))
    found = checker.profiles_of(item, grid)
    with mp.workdps(90):
        q = mpf(rate)

        def before(y: mpf) -> mpf:
            """v at any y = e^x, left of 1 by symmetry."""
            if y < 1:
                return 1 - y + y * before(1 / y)
            return profile(guarantee, Fraction(*mp.log(y).as_integer_ratio()))

        def with_unit(z: mpf) -> mpf:
            return q * before((z - 1 + q) / q) if z > 1 - q else 1 - z

        for x in (0, 0.01, 0.3, 0.7, 2):
            z = mp.exp(mpf(x))
            for there, truth in zip(
                found, (with_unit(z), 1 - z + z * with_unit(1 / z)), strict=True
            ):
                value = mpf(there(Fraction(x))) / 2**BITS
                assert truth - mpf(10) ** -60 <= value <= truth + 8 * mpf(2) ** -BITS


def random_row(source: random.Random, grid: checker.Grid) -> checker.Row:
    """A mixture of (1 − z/a)₊ at x ≥ 0, which is what a profile is."""
    falls = sorted(source.uniform(0, float(grid.step) * grid.cells) for _ in range(5))
    weights = [source.random() / 6 for _ in falls]
    with mp.workdps(60):
        return [
            int(
                mp.ceil(
                    2**grid.bits
                    * mp.fsum(
                        w * max(mpf(0), 1 - mp.exp(mpf(j) * mpf(float(grid.step)) - a))
                        for w, a in zip(weights, falls, strict=True)
                    )
                )
            )
            for j in range(grid.cells + 1)
        ]


def whole_of(row: checker.Row, grid: checker.Grid) -> checker.Row:
    return grid.whole(row, row)


def chords(whole: checker.Row, grid: checker.Grid, x: mpf) -> mpf:
    """The function that a row stands for, at any x."""
    step, one = mpf(float(grid.step)), mpf(2) ** grid.bits
    place = int(mp.floor(x / step))
    if place >= grid.ends:
        return whole[-1] / one
    if place < -grid.ends:
        return 1 - (1 - whole[0] / one) * mp.exp(x + grid.ends * step)
    left, right = whole[place + grid.ends], whole[place + grid.ends + 1]
    share = mp.expm1(x - place * step) / mp.expm1(step)
    return (left - share * (left - right)) / one


@pytest.mark.parametrize("epsilon", [0.25, 0.3, 0.26, 0.07, 1e-9, 0.25 + 1e-14])
def test_bounded_range_is_the_supremum_over_every_t(epsilon: float) -> None:
    """No t gives more, and the best of many gives as much, whether or not ε fits the grid."""
    source = random.Random(3)
    grid = checker.Grid(STEP, 30, 9, BITS)
    whole = whole_of(random_row(source, grid), grid)
    found = checker.BoundedRange(item_of(fa.BoundedRange(epsilon), "br"), grid).apply(whole)
    with mp.workdps(50):
        e = max(mpf(epsilon), mpf("1e-7"))
        for i in range(0, 31, 3):
            x = i * mpf(float(grid.step))

            def f(t: mpf, x: mpf = x) -> mpf:
                q = (1 - mp.exp(t - e)) / (1 - mp.exp(-e))
                return q * chords(whole, grid, x - t) + (1 - q) * chords(whole, grid, x + e - t)

            best, near, width = mpf(0), e / 2, e
            for _ in range(4):  # the second time and later on around the best so far
                tried = [near + width * k / 200 for k in range(-100, 101)]
                best, near = max((f(t), t) for t in tried if 0 <= t <= e)
                width /= 50
            value = mpf(found[i]) / 2**BITS
            assert value >= best - mpf(2) ** -BITS
            assert value <= best + mpf("1e-12")


@pytest.mark.parametrize(("guarantee", "kind"), [k for k in KINDS if k[1] in ("dp", "dgauss")])
def test_a_fixed_loss_is_the_average_over_its_outcomes(guarantee: fa.Guarantee, kind: str) -> None:
    """E[W(x − L)], outcome by outcome."""
    grid = checker.Grid(STEP, 30, 5, BITS)
    whole = whole_of(random_row(random.Random(5), grid), grid)
    (operator,) = checker.operators_of(item_of(guarantee, kind), grid, 1)
    found = operator.apply(whole)
    with mp.workdps(50):
        if isinstance(guarantee, fa.DiscreteGaussian):
            sigma, shift = mpf(guarantee.noise_multiplier), guarantee.sensitivity
            weights = {z: mp.exp(-((z / (sigma * shift)) ** 2) / 2) for z in range(-300, 301)}
            total = mp.fsum(weights.values())
            losses = [
                (w / total, (shift - 2 * z) / (2 * sigma**2 * shift)) for z, w in weights.items()
            ]
        else:
            assert isinstance(guarantee, fa.PureDP)
            epsilon = mpf(guarantee.epsilon)
            q = 1 / (1 + mp.exp(-epsilon))
            losses = [(q, epsilon), (1 - q, -epsilon)]
        for i in (0, 3, 11, 30):
            x = i * mpf(float(grid.step))
            truth = mp.fsum(p * chords(whole, grid, x - loss) for p, loss in losses)
            value = mpf(found[i]) / 2**BITS
            assert truth - mpf(2) ** -BITS <= value <= truth + mpf("1e-30")


@QUICK
@given(
    st.integers(0, 10**6), st.integers(-(10**6), 10**6), st.integers(1, 10**6), st.integers(1, 99)
)
def test_the_summit_of_a_piece(f0: int, rise: int, bend: int, percent: int) -> None:
    one, growth = 1 << 60, (1 << 60) * percent // 100
    top = checker.summit(f0, f0 + rise, bend, growth, one)
    c = growth / one
    at = [k / 1000 for k in range(1001)]
    best = max(f0 + rise * t + bend * t * (1 - t) / (1 + c * t) for t in at)
    assert best - 1e-6 <= top <= best + 2 + bend * 1e-5


@QUICK
@given(tariffs())
def test_every_honest_certificate_passes(tariff: fa.Tariff) -> None:
    certificate = tariff.certify(tolerance=0.3, deltas=(1e-2, 1e-6), epsilons=(0.0, 0.7, 3.0))
    assert checker.check(checker.read(json.dumps(certificate.to_json()))) > 4


@pytest.mark.parametrize("name", ["earlier_certificate", "earlier_certificate_of_counts"])
def test_certificates_of_earlier_versions_pass(name: str) -> None:
    path = Path(__file__).parent / f"{name}.json"
    assert checker.check(checker.read(path.read_text(encoding="utf-8"))) > 4


#: As the tariff of the README and a ladder of (1, 10⁻⁶), with fewer farthings on a wider grid;
#: benchmarks/checking.py has the whole of them.
SIGNED = [
    (replace(README, farthings=40), 5e-3),
    (replace(_rungs(0.0071, 1e-6), farthings=70), 0.15),
]


@pytest.mark.parametrize(("tariff", "tolerance"), SIGNED)
def test_what_people_sign_passes(tariff: fa.Tariff, tolerance: float) -> None:
    assert checker.check(tariff.certify(tolerance=tolerance).to_json()) > 50


@settings(QUICK, max_examples=20)
@given(tariffs(), st.integers(0, 2**32))
def test_whatever_grid_is_proposed_proves_no_less_than_is_reached(
    tariff: fa.Tariff, seed: int
) -> None:
    """The grid of a certificate is a proposal: a forged one can only prove too little."""
    source = random.Random(seed)
    certificate = tariff.certify(tolerance=0.3, deltas=(1e-2, 1e-6), epsilons=(0.7,))
    lower = Proof.of(tariff.budget, tariff.leak, 0.3 / 4, 1e-6).end.lower
    ours = proved(certificate)
    other = proved(
        certificate,
        step=source.uniform(0.05, 0.3),
        cells=source.randint(1, 40),
        unit_step=source.choice([7, 50, 101]),
    )
    for x in (0.0, 0.1, 0.7, 1.3, 3.0, 6.0):
        reached = Fraction(lower.at(x))
        for found in (ours, other):
            assert reached * (1 - Fraction(1, 10**12)) <= found.inner(Fraction(x))
        above = max(1e-12, Proof.of(tariff.budget, tariff.leak, 0.3, 1e-6).end.delta_at_most(x))
        assert ours.inner(Fraction(x)) <= Fraction(above) * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("seed", range(12))
def test_it_bounds_every_way_to_spend(seed: int) -> None:
    """Against exhaustive enumeration, farthings and units; equal where nothing is rounded."""
    source = random.Random(seed)
    items: dict[str, tuple[fa.Guarantee, int]] = {
        "rough": (fa.ApproximateDP(source.randint(4, 12) / 8, 3 * 2.0**-20), source.randint(1, 2)),
        "fine": (fa.PureDP(source.randint(1, 3) / 8), 1),
    }
    if seed % 2:
        items["draw"] = fa.BoundedRange(source.randint(2, 5) / 8), 2
    tariff = fa.Tariff(items, 4, delta_units=source.randint(0, 9), delta_unit=2.0**-20)
    found = proved(tariff.certify(tolerance=0.1), step=1 / 8, cells=60, unit_step=1)
    for x in (0.0, 0.5, 1.25, 2.0):
        reached = Fraction(best_delta(tariff, x, refined=4 if seed % 2 else 1))
        assert reached <= found.delta_at(Fraction(x))
        slack = loss_of_refinement(tariff, 4) + 0.05 if seed % 2 else 1e-4
        assert found.delta_at(Fraction(x)) <= reached + Fraction(slack)


@pytest.mark.parametrize("part", ["epsilon_at", "delta_at", "profile"])
def test_no_number_can_be_lowered_by_a_hair(part: str) -> None:
    """Every claim and point: one part in a million less is refused."""
    items = {
        "draw": (fa.BoundedRange(0.4), 1),
        "count": (fa.Gaussian(4.0), 1),
        "leak": (fa.ApproximateDP(0.25, 1e-9), 1),
    }
    tariff = fa.Tariff(items, 3, delta_units=2, delta_unit=1e-9)
    honest = tariff.certify(tolerance=0.2, deltas=(1e-3, 1e-6), epsilons=(0.3, 1.0))
    checker.check(honest.to_json())
    entries = json.loads(json.dumps(honest.to_json()))[part]
    for place in range(0, len(entries), max(1, len(entries) // 12)):
        data = json.loads(json.dumps(honest.to_json()))
        if part == "profile":
            if data[part][place][1] < 1e-4:
                continue  # far out what was certified is larger than need be
            data[part][place][1] *= 1 - 1e-6
        else:
            data[part][place]["upper"] *= 1 - 1e-6
            data[part][place]["lower"] *= 0.5
        with pytest.raises(checker.Refused, match="is not proved"):
            checker.check(signed(data))


@pytest.mark.parametrize(
    "text",
    [
        *("zcdp:0.1", "tcdp:0.1,3.0", "subset:0.01/gauss:1.0", "br:0.1,2.0", "br", ":", "adp:0.1"),
        *("gauss:0.0", "dp:nan", "dp:inf", "dp:-1.0", "dp:1e0", "dp:٣", "dgauss:1.0,0"),
        *("dgauss:1e300", "poisson:0.1/br:0.1", "poisson:0.0/dp:0.1", "poisson:1.5/dp:0.1"),
        *("poisson:0.1", "poisson:0.1/poisson:0.1/dp:0.1", "poisson:0.1/zcdp:0.1"),
    ],
)
def test_kinds_that_it_does_not_know_are_refused(text: str) -> None:
    data = fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 2).certify(tolerance=0.2).to_json()
    data["tariff"]["items"]["a"]["guarantee"] = text
    with pytest.raises(checker.Refused):
        checker.check(signed(data))


@pytest.mark.parametrize(
    "grid",
    [
        None,
        {},
        {"step": 0.0, "cells": 9, "unit_step": 1},
        {"step": 1e-30, "cells": 9, "unit_step": 1},
        {"step": 0.1, "cells": 10**12, "unit_step": 1},
        {"step": 0.1, "cells": 9.0, "unit_step": 1},
        {"step": 0.1, "cells": 9, "unit_step": 0},
        {"step": 0.1, "cells": 9, "unit_step": 1, "note": 1},
        {"step": 5.0, "cells": 9, "unit_step": 1},
    ],
)
def test_grids_on_which_nothing_is_proved(grid: object) -> None:
    data = fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 2).certify(tolerance=0.2).to_json()
    with pytest.raises(checker.Refused):
        checker.check(signed({**data, "grid": grid}))


#: Tariffs that once kept it busy for ever: items, farthings, and what they propose as a grid.
ENDLESS = {
    "outcomes": ({"a": "dgauss:1000.0,1000"}, 2, (0.1, 9)),
    "a sample of a vast loss": ({"a": "poisson:0.5/dp:1000000000"}, 2, (0.1, 9)),
    "a loss without end": ({"a": "dp:1" + 400 * "0"}, 2, (0.1, 9)),
    "a number of too many digits": ({"a": "dp:1" + 5000 * "0"}, 2, (0.1, 9)),
    "cuts": ({"a": "br:1.9"}, 1, (1e-5, 100_000)),
    "cuts of few cells": ({"a": "br:1.9"}, 10**7, (1e-5, 5)),
    "items": ({f"i{k}": f"gauss:{k + 1}.5" for k in range(5000)}, 2, (0.1, 9)),
    "many items": ({f"i{k}": f"gauss:{k + 1}.5" for k in range(999)}, 10**5, (0.1, 999)),
    "farthings": ({"a": "dp:0.5"}, 10**17, (0.1, 9)),
    "bits": ({"a": "gauss:1.5"}, 9, (0.015, 130_000)),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_would_take_for_ever_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed that could take long."""

    def spend(*_: object) -> None:
        pytest.fail("it began")

    monkeypatch.setattr(checker, "spend", spend)
    texts, farthings, (step, cells) = ENDLESS[what]
    data = fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 2).certify(tolerance=0.2).to_json()
    data["tariff"]["items"] = {
        name: {"guarantee": text, "price": 1} for name, text in texts.items()
    }
    data["tariff"]["farthings"] = farthings
    data["grid"] = {"step": step, "cells": cells, "unit_step": 1}
    with pytest.raises(checker.Refused):
        checker.check(signed(data))


@pytest.mark.parametrize(
    "place", ["farthings", "delta_unit", "tolerance", "epsilon_at", "delta_at", "grid", "profile"]
)
@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_without_end_are_refused(place: str, digits: int, tmp_path: Path) -> None:
    certificate = fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 2).certify(tolerance=0.2)
    data, vast = certificate.to_json(), 10**digits
    match place:
        case "farthings" | "delta_unit":
            data["tariff"] |= {"delta_units": 1, place: vast}
        case "epsilon_at" | "delta_at":
            data[place][-1] = {**data[place][-1], "lower": 0, "upper": vast}
        case "grid":
            data["grid"]["step"] = vast
        case "profile":
            data["profile"][0][1] = vast
        case _:
            data[place] = vast
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    path = tmp_path / "vast.json"
    path.write_text(json.dumps(signed(data)), encoding="utf-8")
    sys.set_int_max_str_digits(limit)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(FILE), str(path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("refused: ")


def test_progress_is_shown_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    fa.Tariff({"a": (fa.BoundedRange(0.3), 1)}, 5).certify(tolerance=0.1).write(path)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(FILE), str(path)], stdout=subprocess.PIPE, stderr=theirs
    ) as running:
        os.close(theirs)
        printed = running.communicate()[0]
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert printed.startswith(b"checked: ")
    assert shown.startswith("\r0 of 1 items")
    assert shown.rstrip().endswith("5 of 5 farthings")


def test_rows_fall_and_keep_the_chords_above() -> None:
    grid = checker.Grid(STEP, 30, 9, BITS)
    whole = whole_of(random_row(random.Random(8), grid), grid)
    assert len(whole) == 2 * grid.ends + 1
    assert all(left >= right for left, right in pairwise(whole))
