"""Tariffs that mean nothing raise, and say why."""

from __future__ import annotations

import pytest

import farthing as fa
from farthing.composition.tariffs.tariff import tariff_from_json

SELECT = fa.BoundedRange(0.1)


@pytest.mark.parametrize("price", [0, -1, 1.5, True, "1", None, float("nan")])
def test_prices_are_positive_whole_numbers(price: object) -> None:
    with pytest.raises(fa.InvalidInput, match="price of select must be a whole number"):
        fa.Tariff({"select": (SELECT, price)}, farthings=10)


@pytest.mark.parametrize("farthings", [0, -4, 2.5, "400", None])
def test_farthings_are_positive_whole_numbers(farthings: object) -> None:
    with pytest.raises(fa.InvalidInput, match="farthings must be a whole number"):
        fa.Tariff({"select": (SELECT, 1)}, farthings=farthings)


def test_an_empty_tariff_is_refused() -> None:
    with pytest.raises(fa.InvalidInput, match="at least one item"):
        fa.Tariff({}, farthings=10)


@pytest.mark.parametrize("entry", [SELECT, (SELECT,), ("br:0.1", 1), (0.1, 1)])
def test_an_item_is_a_guarantee_and_a_price(entry: object) -> None:
    with pytest.raises(fa.InvalidInput, match="item select must"):
        fa.Tariff({"select": entry}, farthings=10)


@pytest.mark.parametrize(
    "guarantee",
    [
        fa.ZeroConcentratedDP(0.1),
        fa.ConcentratedDP(0.1, 0.2),
        fa.TruncatedConcentratedDP(0.1, 3.0),
        fa.RenyiDP(lambda alpha: alpha),
    ],
)
def test_kinds_that_only_bound_moments_are_not_sold(guarantee: fa.Guarantee) -> None:
    with pytest.raises(fa.Unsupported, match="worst case is not known"):
        fa.Tariff({"x": (guarantee, 1)}, farthings=10)


def test_delta_units_must_leave_something() -> None:
    with pytest.raises(fa.InvalidInput, match="less than 1"):
        fa.Tariff({"x": (SELECT, 1)}, farthings=1, delta_units=10, delta_unit=0.1)
    tariff = fa.Tariff({"x": (SELECT, 1)}, farthings=1, delta_units=10, delta_unit=1e-3)
    with pytest.raises(fa.InvalidInput, match=r"must exceed the 0\.01"):
        tariff.certify(deltas=(1e-3,))


def test_unknown_items_have_no_price() -> None:
    with pytest.raises(fa.InvalidInput, match="item must be one of select"):
        fa.Tariff({"select": (SELECT, 1)}, farthings=10).price("count")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"items": {}}, "at least one item|how many farthings"),
        ({"farthings": 4}, "items.NAME"),
        ({"farthings": 4, "items": {"a": {"guarantee": "foo:1", "price": 1}}}, "kind must be"),
        ({"farthings": 4, "items": {"a": {"guarantee": "br:x", "price": 1}}}, "must be a number"),
        ({"farthings": 4, "items": {"a": {"guarantee": "2xbr:1", "price": 1}}}, "without a count"),
        ({"farthings": 4, "items": {"a": {"guarantee": 3, "price": 1}}}, "must be text"),
        ({"farthings": 4, "items": {"a": {"guarantee": "br:1"}}}, "guarantee and a price"),
        ({"farthings": 4, "items": {}, "pounds": 1}, "no field pounds"),
        ([], "must be a table"),
    ],
)
def test_files_that_mean_nothing(data: object, message: str) -> None:
    with pytest.raises(fa.InvalidInput, match=message):
        tariff_from_json(data)


@pytest.mark.parametrize(
    ("epsilon", "farthings", "message"),
    [(0.1, 10**6, "protects nobody"), (1e-3, 10**6, "would take hours")],
)
def test_a_tariff_that_is_too_large_is_refused_at_once(
    epsilon: float, farthings: int, message: str
) -> None:
    tariff = fa.Tariff({"x": (fa.BoundedRange(epsilon), 1)}, farthings=farthings)
    with pytest.raises(fa.NotCertified, match=message):
        tariff.certify()
