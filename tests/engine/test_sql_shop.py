"""The analytics of dbt's sample shop, as people write them, against the same text in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.shops import jaffle_shop
from farthing.engine.sources.base import Source
from farthing.ledger.declared_data import Dataset, Limits
from farthing.schema import Column, Schema
from tests.engine.exact import asked, on_engine, plain_sql, without_zeros

SCHEMA = Schema(
    (
        Column("customer_id", "integer"),
        Column("country", "text", categories=("NO", "SE", "DK")),
        Column("order_id", "integer"),
        Column("order_date", "date"),
        Column("status", "text", categories=("placed", "completed", "returned")),
        Column("amount", "integer", lower=0, upper=100),
        Column("paid_on", "date"),
        Column("paid", "integer", lower=0, upper=100),
        Column("payment_method", "text", categories=("credit_card", "coupon", "gift_card")),
        Column("table", "text", categories=("customers", "orders", "payments")),
    )
)
SHOP = Dataset("shop", "customer_id", "owner", schema=SCHEMA, limits=Limits(per_key_limit=40))
ORDERS = (
    "WITH customer_orders AS (SELECT customer_id, MIN(order_date) AS first_order, MAX(order_date) "
    "AS most_recent_order, COUNT(order_id) AS number_of_orders FROM orders GROUP BY 1) "
)
#: The texts, with how many columns are keys and what SQL has no words for.
ASKED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "lifetime value above 100": (
        "SELECT COUNT(*) FROM (SELECT customer_id, SUM(paid) AS lifetime_value FROM payments "
        "GROUP BY customer_id) AS spent WHERE lifetime_value > 100",
        0,
        {},
    ),
    "orders per customer": (
        f"{ORDERS} SELECT AVG(number_of_orders) FROM customer_orders",
        0,
        {"lower": 0, "upper": 20},
    ),
    "customers by number of orders": (
        f"{ORDERS} SELECT CASE WHEN number_of_orders = 1 THEN 'one' WHEN number_of_orders < 4 THEN "
        "'some' ELSE 'many' END AS orders, COUNT(*) AS customers FROM customer_orders GROUP BY 1",
        1,
        {},
    ),
    "first order by month": (
        f"{ORDERS} SELECT DATE_TRUNC('month', first_order) AS month, COUNT(*) FROM customer_orders "
        "GROUP BY month",
        1,
        {},
    ),
    "gone quiet": (
        f"{ORDERS} SELECT COUNT(*) FROM customer_orders WHERE most_recent_order < "
        "DATE '2018-04-01' - INTERVAL '1 month'",
        0,
        {},
    ),
    "repeat rate": (
        f"{ORDERS} SELECT AVG(CASE WHEN number_of_orders > 1 THEN 1.0 ELSE 0 END) AS repeat_rate "
        "FROM customer_orders",
        0,
        {},
    ),
    "revenue by month": (
        "SELECT DATE_TRUNC('month', paid_on) AS month, SUM(paid) AS revenue, COUNT(*) AS payments "
        "FROM payments GROUP BY 1",
        1,
        {"contribution_limit": 12},
    ),
    "share of payment methods": (
        "SELECT SUM(CASE WHEN payment_method = 'coupon' THEN paid ELSE 0 END) / "
        "NULLIF(SUM(paid), 0) AS coupons FROM payments",
        0,
        {},
    ),
    "payments by method": (
        "SELECT payment_method, SUM(paid) AS total, AVG(paid) AS average, COUNT(paid) AS n "
        "FROM payments WHERE paid > 3 GROUP BY payment_method",
        1,
        {"contribution_limit": 3},
    ),
    "order value by month of first order": (
        f"{ORDERS} SELECT DATE_TRUNC('month', first_order), AVG(amount) FROM orders JOIN "
        "customer_orders USING (customer_id) WHERE status <> 'returned' GROUP BY 1",
        1,
        {},
    ),
    "retention": (
        f"{ORDERS} SELECT DATE_TRUNC('month', first_order), DATE_TRUNC('month', order_date), "
        "COUNT(DISTINCT o.customer_id) FROM orders AS o JOIN customer_orders AS c ON "
        "o.customer_id = c.customer_id GROUP BY 1, 2",
        2,
        {"contribution_limit": 12},
    ),
    "days from the first to the second order": (
        "WITH firsts AS (SELECT customer_id, MIN(order_date) AS first_order FROM orders GROUP BY "
        "customer_id), seconds AS (SELECT customer_id, MIN(order_date) AS second_order FROM orders "
        "JOIN firsts USING (customer_id) WHERE order_date > first_order GROUP BY customer_id) "
        "SELECT AVG(days(second_order, first_order)) FROM firsts JOIN seconds USING (customer_id)",
        0,
        {"lower": 0, "upper": 100},
    ),
    "never returned anything": (
        "SELECT country, COUNT(DISTINCT customer_id) FROM customers WHERE customer_id NOT IN "
        "(SELECT customer_id FROM orders WHERE status = 'returned') GROUP BY country",
        1,
        {"contribution_limit": 1},
    ),
    "orders of customers who came back": (
        f"{ORDERS} SELECT status, COUNT(*) FROM orders WHERE customer_id IN (SELECT customer_id "
        "FROM customer_orders WHERE number_of_orders > 1) AND EXISTS (SELECT 1 FROM customers AS c "
        "WHERE c.customer_id = orders.customer_id AND c.country <> 'NO') GROUP BY status",
        1,
        {"contribution_limit": 3},
    ),
    "customers without an order": (
        f"{ORDERS} SELECT COUNT(*) FROM customers LEFT JOIN customer_orders ON "
        "customers.customer_id = customer_orders.customer_id WHERE number_of_orders IS NULL",
        0,
        {"per_key_limit": 2},
    ),
    "orders of everybody": (
        f"{ORDERS} SELECT country, AVG(COALESCE(number_of_orders, 0)) FROM customers LEFT JOIN "
        "customer_orders USING (customer_id) GROUP BY country",
        1,
        {"lower": 0, "upper": 20, "contribution_limit": 1},
    ),
    "revenue by country": (
        "SELECT home, SUM(paid) FILTER (WHERE payment_method = 'coupon') AS coupons, "
        "COUNT_IF(payment_method = 'coupon') AS n FROM payments JOIN (SELECT customer_id, "
        "MAX(country) AS home FROM customers GROUP BY customer_id) AS c USING (customer_id) "
        "GROUP BY home",
        1,
        {},
    ),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return jaffle_shop(tmp_path_factory.mktemp("shop"), 200)


@pytest.fixture(scope="module", params=["duckdb", "spark", "postgres"])
def shop(request: Any, tables: dict[str, Path]) -> Iterator[Source]:
    server = None if request.param == "duckdb" else request.getfixturevalue(request.param)
    with on_engine(request.param, tables, {}, server) as (source, _):
        yield source


@pytest.mark.parametrize("name", ASKED)
def test_the_same_text_gives_the_same_numbers(shop: Source, tables: Any, name: str) -> None:
    text, keys, options = ASKED[name]
    found = asked(shop, SHOP, text, **options)
    with plain_sql(tables) as run:
        expected = run(text, keys)
    assert len(found) == len(expected)
    for numbers, wanted in zip(found.values(), expected, strict=True):
        assert wanted
        assert without_zeros(numbers) == pytest.approx(without_zeros(wanted), rel=1e-5)


def test_tables_are_proposed_by_their_names(tables: Any) -> None:
    with on_engine("duckdb", tables, {}, None) as (source, _):
        proposed = {column.name: column for column in source.proposed_schema().columns}
        assert proposed["table"].categories == ("customers", "orders", "payments")
