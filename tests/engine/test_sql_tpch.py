"""Queries of TPC-H about customers, on three engines, against what they say in plain SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.shops import (
    LINE_COLUMNS,
    MODES,
    NATIONS,
    PRIORITIES,
    PRIVATE,
    PUBLIC,
    REGIONS,
    tpch,
)
from farthing.engine.sources.base import Source
from farthing.engine.sql.bounding import text_of
from farthing.engine.sql_questions.questions import queries_in
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Dataset, Limits
from farthing.schema import Column, Lookup, Schema
from tests.engine.exact import asked, on_engine, plain_sql, without_zeros
from tests.engine.rows import place_of

#: Nobody has more than this.
GENEROUS = Limits(contribution_limit=30, per_key_limit=500)


def schema(public: Mapping[str, str]) -> Schema:
    """What an owner declares; nations, parts and suppliers are looked up in public tables."""
    part = Lookup(public["part"], by="l_partkey", key="partkey")
    supplier = Lookup(public["supplier"], by="l_suppkey", key="suppkey")
    home = Lookup(public["nation"], by="c_nationkey", key="nationkey", column="nation")
    nations = tuple(name for name, _ in NATIONS)
    return Schema(
        (
            Column("custkey", "integer"),
            Column("c_nationkey", "integer"),
            Column("c_phone", "text"),
            Column("c_acctbal", "decimal", places=2, lower=-1000, upper=10_000),
            Column("o_orderkey", "integer"),
            Column("o_orderdate", "date"),
            Column("o_orderpriority", "text", categories=PRIORITIES),
            Column("o_late", "boolean"),
            Column("l_partkey", "integer"),
            Column("l_suppkey", "integer"),
            *LINE_COLUMNS,
            *(Column(f"l_{name}date", "date") for name in ("ship", "commit", "receipt")),
            Column("l_shipinstruct", "text"),
            Column("l_shipmode", "text", categories=MODES),
            Column("c_nation", "text", categories=nations, lookup=home),
            Column("s_nation", "text", categories=nations, lookup=supplier),
            Column("s_region", "text", categories=REGIONS, lookup=supplier),
            *(Column(name, "text", lookup=part) for name in ("p_brand", "p_type", "p_container")),
            Column("p_size", "integer", lookup=part, lower=1, upper=50),
            Column("table", "text", categories=PRIVATE),
        )
    )


#: Each query in its private form with options, and the same in plain SQL over all tables.
QUERIES = {
    "1": (
        "SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, "
        "SUM(l_extendedprice) AS sum_base_price, "
        "SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price, "
        "SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, "
        "AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS "
        "avg_disc, COUNT(*) AS count_order FROM lineitem "
        "WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY "
        "GROUP BY l_returnflag, l_linestatus",
        {"places": 4},
        None,
    ),
    "4": (
        "SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= "
        "DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH AND o_late "
        "GROUP BY o_orderpriority",
        {},
        "SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= "
        "DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH AND EXISTS ("
        "SELECT * FROM lineitem WHERE lineitem.o_orderkey = orders.o_orderkey AND l_commitdate < "
        "l_receiptdate) GROUP BY o_orderpriority",
    ),
    "4, about customers": (
        "SELECT o_orderpriority, COUNT(DISTINCT custkey) AS buyers FROM orders AS o WHERE "
        "EXTRACT(YEAR FROM o_orderdate) = 1993 AND EXISTS (SELECT * FROM lineitem AS l WHERE "
        "l.custkey = o.custkey AND l_commitdate < l_receiptdate AND l_shipmode = 'MAIL') "
        "GROUP BY o_orderpriority",
        {},
        None,
    ),
    "5": (
        "SELECT s_nation, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem "
        "WHERE c_nation = s_nation AND s_region = 'ASIA' AND o_orderdate >= DATE '1994-01-01' "
        "AND o_orderdate < DATE '1994-01-01' + INTERVAL '3' YEAR GROUP BY s_nation",
        {"places": 4},
        "SELECT n.nation, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer c JOIN "
        "orders o USING (custkey) JOIN lineitem l ON l.o_orderkey = o.o_orderkey JOIN supplier s "
        "ON l.l_suppkey = s.suppkey JOIN nation n ON c.c_nationkey = n.nationkey WHERE s.s_nation "
        "= n.nation AND n.region = 'ASIA' AND o.o_orderdate >= DATE '1994-01-01' AND o.o_orderdate "
        "< DATE '1994-01-01' + INTERVAL '3' YEAR GROUP BY n.nation",
    ),
    "6": (
        "SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= "
        "DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR AND l_discount "
        "BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
        {"places": 4},
        None,
    ),
    "12": (
        "SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = "
        "'2-HIGH' THEN 1 ELSE 0 END) AS high_line_count, SUM(CASE WHEN o_orderpriority <> "
        "'1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count FROM "
        "lineitem WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND "
        "l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < "
        "DATE '1994-01-01' + INTERVAL '1' YEAR GROUP BY l_shipmode",
        {},
        None,
    ),
    "14": (
        "SELECT SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 "
        "END) / SUM(l_extendedprice * (1 - l_discount)) AS promo_share FROM lineitem WHERE "
        "l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL '1' MONTH",
        {"places": 4},
        "SELECT SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 "
        "END) / SUM(l_extendedprice * (1 - l_discount)) FROM lineitem, part WHERE l_partkey = "
        "partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
    ),
    "19": (
        "SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem WHERE (p_brand = "
        "'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity "
        ">= 1 AND l_quantity <= 1 + 40 AND p_size BETWEEN 1 AND 35 AND l_shipmode IN ('AIR', "
        "'REG AIR', 'MAIL')) OR (p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX', "
        "'MED PKG', 'MED PACK') AND l_quantity >= 10 AND l_quantity <= 10 + 30 AND p_size BETWEEN "
        "1 AND 40 AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON')",
        {"places": 4},
        "SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem JOIN part ON "
        "l_partkey = partkey WHERE (p_brand = "
        "'Brand#12' AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG') AND l_quantity "
        ">= 1 AND l_quantity <= 1 + 40 AND p_size BETWEEN 1 AND 35 AND l_shipmode IN ('AIR', "
        "'REG AIR', 'MAIL')) OR (p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX', "
        "'MED PKG', 'MED PACK') AND l_quantity >= 10 AND l_quantity <= 10 + 30 AND p_size BETWEEN "
        "1 AND 40 AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON')",
    ),
    "22": (
        "SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) "
        "AS totacctbal FROM customer WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', "
        "'29', '30', '18', '17') AND c_acctbal > 1500.00 AND NOT EXISTS (SELECT * FROM orders "
        "WHERE orders.custkey = customer.custkey) GROUP BY cntrycode",
        {},
        None,
    ),
}


#: Means are measured in steps; a charge has six decimals, of which four are kept of each row.
ROUNDED = {"avg_qty": 1e-5, "avg_price": 1e-5, "avg_disc": 1e-5, "sum_charge": 1e-8}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return tpch(tmp_path_factory.mktemp("tpch"), 150)


@pytest.fixture(scope="module", params=["duckdb", "spark", "postgres"])
def shop(request: Any, tables: dict[str, Path]) -> Iterator[tuple[Source, Dataset]]:
    """The private tables as one source, and what is declared about them."""
    private, public = ({name: tables[name] for name in names} for names in (PRIVATE, PUBLIC))
    server = None if request.param == "duckdb" else request.getfixturevalue(request.param)
    with on_engine(request.param, private, public, server) as (source, places):
        declared = source.with_public_tables(schema(places))
        yield source, Dataset("tpch", "custkey", "owner", schema=declared, limits=GENEROUS)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_what_it_says(shop: Any, tables: Any, name: str) -> None:
    """Where nobody reaches a limit, every number is that of plain SQL."""
    source, about = shop
    text, options, plain = QUERIES[name]
    keys = text.rpartition("GROUP BY")[2].count(",") + 1 if "GROUP BY" in text else 0
    with plain_sql(tables) as run:
        expected = run(plain or text, keys)
    found = asked(source, about, text, **options)
    assert len(found) == len(expected)
    for (column, numbers), wanted in zip(found.items(), expected, strict=True):
        assert wanted, "the table is too small for this query"
        precise = ROUNDED.get(column, 1e-12)
        assert without_zeros(numbers) == pytest.approx(without_zeros(wanted), rel=precise), column


def test_limits_that_bite(shop: Any, tables: Any) -> None:
    """Of each customer two ways of shipping count, with a sum of at most 60 pieces, or 3 rows."""
    source, about = shop
    pieces: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in pq.read_table(tables["lineitem"]).to_pylist():
        pieces[row["custkey"]][row["l_shipmode"]].append(row["l_quantity"])
    sums, counts = dict.fromkeys(MODES, 0), dict.fromkeys(MODES, 0)
    for customer, modes in pieces.items():
        places = {m: place_of("key", text_of(customer), text_of(m)) for m in modes}
        for mode in sorted(modes, key=places.__getitem__)[:2]:
            sums[mode] += min(sum(modes[mode]), 60)
            counts[mode] += min(len(modes[mode]), 3)
    few = replace(about, limits=Limits(contribution_limit=2, per_key_limit=3))
    text = "SELECT l_shipmode, {} FROM lineitem GROUP BY l_shipmode"
    rows = asked(source, few, text.format("COUNT(*)"))
    added = asked(source, few, text.format("SUM(l_quantity)"), lower=0, upper=60)
    assert rows["COUNT(*)"] == {(mode,): count for mode, count in counts.items()}
    assert added["SUM(l_quantity)"] == {(mode,): total for mode, total in sums.items()}


#: Parts of the original texts that cannot be said, with the clause and the nearest that can.
REFUSED = {
    "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT * FROM lineitem WHERE lineitem.o_orderkey = "
    "orders.o_orderkey)": "EXISTS must compare custkey with custkey outside",
    "SELECT COUNT(*) FROM customer WHERE c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE "
    "c_acctbal > 0.00)": "ask the sub-select first and write its number here",
    "SELECT COUNT(*) FROM lineitem, part WHERE l_partkey = partkey": (
        "part: a question is about one table"
    ),
    "SELECT COUNT(*) FROM orders JOIN customer USING (custkey)": (
        "JOIN (SELECT custkey, MAX(…) AS … FROM customer GROUP BY custkey) AS c USING (custkey)"
    ),
    "SELECT COUNT(*) FROM region": "region: the tables are customer, orders, lineitem; all of them "
    "are tpch",
    "SELECT l_returnflag, SUM(l_quantity) OVER () FROM lineitem GROUP BY 1": "OVER ()",
    "SELECT COUNT(*) FROM lineitem WHERE l_shipdate < l_commitdate - INTERVAL '30' DAY": (
        "INTERVAL '30' DAY: an interval is added to a date that is written out; with columns, "
        "compare days(later, earlier) with a number"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_said_names_what_can(text: str) -> None:
    places = dict.fromkeys(PUBLIC, "public.parquet")
    about = Dataset("tpch", "custkey", "owner", schema=schema(places), limits=GENEROUS)
    with pytest.raises(InvalidInput) as refused:
        queries_in(text, about, {})
    assert REFUSED[text] in str(refused.value)
