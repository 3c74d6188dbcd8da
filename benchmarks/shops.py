"""Made-up shops: the tables of TPC-H from the description of their columns, and a small shop.

An owner prepares them for questions about customers: every private table has the customer, line
items have what questions need of their order, and parts, suppliers and nations are public.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from farthing.schema import Column

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4),
    ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1),
    ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip # a list of names
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
_KINDS = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
_BOXES = ("SM", "LG", "MED", "JUMBO", "WRAP"), ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN")
#: What an owner declares of the numbers and flags of a line item.
LINE_COLUMNS = (
    Column("l_quantity", "integer", lower=0, upper=50),
    Column("l_extendedprice", "decimal", places=2, lower=0, upper=105_000),
    Column("l_discount", "decimal", places=2, lower=0, upper=0.1),
    Column("l_tax", "decimal", places=2, lower=0, upper=0.08),
    Column("l_returnflag", "text", categories=("A", "N", "R")),
    Column("l_linestatus", "text", categories=("F", "O")),
)
PRIVATE, PUBLIC = ("customer", "orders", "lineitem"), ("part", "supplier", "nation")


def tpch(folder: Path, customers: int) -> dict[str, Path]:
    """The tables as Parquet files; 150 000 customers are about 6 000 000 line items."""
    parts, suppliers, orders = max(customers, 400), max(customers // 15, 50), customers * 10
    buyers = f"3 * {_drawn('i', 1, customers // 3)} + 1 + {_drawn('i', 2, 2)}"
    nations = ", ".join(
        f"({key}, '{name}', '{REGIONS[region]}')" for key, (name, region) in enumerate(NATIONS)
    )
    price = "(90000 + (part // 10) % 20001 + 100 * (part % 1000)) / 100"
    late = "l_receiptdate > l_commitdate"
    statements = {
        "nation": "SELECT key::BIGINT AS nationkey, nation, region FROM "
        f"(VALUES {nations}) AS t(key, nation, region)",
        "part": f"SELECT i + 1 AS partkey, 'Brand#' || {_drawn('i', 3, 5)} + 1 || "
        f"{_drawn('i', 4, 5)} + 1 AS p_brand, "
        f"{_words('i', 5, *_KINDS)} AS p_type, {_words('i', 9, *_BOXES)} AS p_container, "
        f"{_drawn('i', 12, 50)} + 1 AS p_size FROM range({parts}) AS t(i)",
        "supplier": f"SELECT i + 1 AS suppkey, nation AS s_nation, region AS s_region FROM "
        f"range({suppliers}) AS t(i) JOIN nation ON nationkey = {_drawn('i', 13, 25)}",
        "customer": f"SELECT i + 1 AS custkey, {_drawn('i', 14, 25)} AS c_nationkey, "
        f"{_drawn('i', 14, 25)} + 10 || '-' || {_drawn('i', 15, 900)} + 100 || '-1234' AS c_phone, "
        f"(({_drawn('i', 16, 1_100_000)} - 99_999) / 100)::DECIMAL(15, 2) AS c_acctbal "
        f"FROM range({customers}) AS t(i)",
        "lines": "SELECT i * 8 + line AS l, i + 1 AS o_orderkey, custkey, o_orderdate, "
        f"o_orderpriority FROM (SELECT i, {buyers} AS custkey, "
        f"DATE '1992-01-01' + {_drawn('i', 17, 2406)}::INTEGER AS o_orderdate, "
        f"{_words('i', 18, PRIORITIES)} AS o_orderpriority, "
        f"unnest(range(1 + {_drawn('i', 19, 7)})) AS line FROM range({orders}) AS t(i))",
        "lineitem": "SELECT custkey, c_nationkey, o_orderkey, o_orderdate, o_orderpriority, "
        "part + 1 AS l_partkey, l_suppkey, l_quantity, "
        f"(l_quantity * {price})::DECIMAL(15, 2) AS l_extendedprice, l_discount, l_tax, "
        "CASE WHEN l_receiptdate > DATE '1995-06-17' THEN 'N' WHEN l % 2 = 0 THEN 'R' ELSE 'A' END "
        "AS l_returnflag, CASE WHEN l_shipdate > DATE '1995-06-17' THEN 'O' ELSE 'F' END AS "
        "l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode FROM ("
        "SELECT *, l_shipdate + l_days::INTEGER AS l_receiptdate FROM (SELECT lines.*, "
        f"{_drawn('l', 20, parts)} AS part, {_drawn('l', 21, suppliers)} + 1 AS l_suppkey, "
        f"{_drawn('l', 22, 50)} + 1 AS l_quantity, "
        f"({_drawn('l', 23, 11)} / 100)::DECIMAL(15, 2) AS l_discount, "
        f"({_drawn('l', 24, 9)} / 100)::DECIMAL(15, 2) AS l_tax, "
        f"o_orderdate + (1 + {_drawn('l', 25, 121)})::INTEGER AS l_shipdate, "
        f"o_orderdate + (30 + {_drawn('l', 26, 61)})::INTEGER AS l_commitdate, "
        f"1 + {_drawn('l', 27, 30)} AS l_days, {_words('l', 28, INSTRUCTIONS)} AS l_shipinstruct, "
        f"{_words('l', 29, MODES)} AS l_shipmode FROM lines)) JOIN customer USING (custkey)",
        "orders": "SELECT any_value(custkey) AS custkey, o_orderkey, any_value(o_orderdate) AS "
        f"o_orderdate, any_value(o_orderpriority) AS o_orderpriority, bool_or({late}) AS o_late "
        "FROM lineitem GROUP BY o_orderkey",
    }
    places = _written(folder, statements)
    places.pop("lines").unlink()  # a step on the way
    return places


def _written(folder: Path, statements: dict[str, str]) -> dict[str, Path]:
    """A Parquet file for each statement, which may read the tables before it."""
    places = {name: folder / f"{name}.parquet" for name in statements}
    with duckdb.connect() as connection:
        for name, statement in statements.items():
            connection.execute(f"CREATE TABLE {name} AS {statement}")
            connection.execute(f"COPY {name} TO '{places[name]}'")
    return places


def _drawn(seed: str, salt: int, below: int) -> str:
    """A number from 0 that is the same for the same row."""
    return f"(hash({seed} * 100 + {salt}) % {below})::BIGINT"


def _words(seed: str, salt: int, *choices: tuple[str, ...]) -> str:
    """A word of each list, with spaces between them."""
    drawn = (
        f"[{', '.join(repr(word) for word in words)}][{_drawn(seed, salt + i, len(words))} + 1]"
        for i, words in enumerate(choices)
    )
    return " || ' ' || ".join(drawn)


def jaffle_shop(folder: Path, customers: int) -> dict[str, Path]:
    """Customers, their orders and payments, as in dbt's sample: some never ordered, many once."""
    day = f"DATE '2018-01-01' + ({_drawn('i', 1, 60)} + n * (3 + {_drawn('i', 2, 30)}))::INTEGER"
    statements = {
        "customers": f"SELECT i + 1 AS customer_id, {_words('i', 3, ('NO', 'SE', 'DK'))} AS "
        f"country FROM range({customers}) AS t(i)",
        "orders": f"SELECT i + 1 AS customer_id, i * 10 + n AS order_id, {day} AS order_date, "
        f"{_words('i * 10 + n', 4, ('placed', 'completed', 'completed', 'returned'))} AS status, "
        f"5 + {_drawn('i * 10 + n', 5, 60)} AS amount FROM (SELECT i, unnest(range("
        f"greatest(0, {_drawn('i', 6, 7)} - 2))) AS n FROM range({customers}) AS t(i))",
        "payments": "SELECT customer_id, order_id, order_date AS paid_on, amount // (1 + split) "
        f"AS paid, {_words('order_id + split', 7, ('credit_card', 'coupon', 'gift_card'))} AS "
        "payment_method FROM (SELECT *, unnest(range(1 + order_id % 2)) AS split FROM orders)",
    }
    return _written(folder, statements)
