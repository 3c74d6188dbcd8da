"""Computed columns are the same on every engine, to the last bit, and as a slow oracle says."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from farthing.engine.computed.columns import ComputedColumns
from farthing.engine.computed.compile import with_columns
from farthing.engine.filters import AllOf, AnyOf, Between, Equals, Filter, Not, OneOf, Present
from farthing.engine.sources.base import Source
from farthing.engine.sources.opening import open_source
from farthing.engine.sql.statement import Texts
from farthing.engine.where_text.conditions import expression_in
from farthing.engine.where_text.expressions import Call, Case, Expression, Literal, Name, PerUnit
from farthing.schema import Column, Schema
from tests.engine.engines import on_postgres, on_spark

SCHEMA = Schema(
    (
        Column("row", "integer"),
        Column("who", "text"),
        Column("whole", "integer", lower=-50, upper=10**6),
        Column("count", "integer", lower=0, upper=9),
        Column("worth", "real", lower=-1e6, upper=1e6),
        Column("tiny", "real", lower=-1e-140, upper=1e70),
        Column("price", "decimal", places=2, lower=0, upper=1000),
        Column("text", "text"),
        Column("kind", "text", categories=("a", "b")),
        Column("day", "date"),
        Column("born", "date"),
        Column("time", "timestamp"),
        Column("flag", "boolean"),
    )
)
WHO = ["u", "u", "u", "v", "v", "w", "Ü", None, "z"]
WHOLES = [0, 1, -1, 7, -50, 10**6, 2**63 - 1, -(2**63), None, 2**53 + 1]
REALS = [
    0.0,
    -0.0,
    0.1,
    1.5,
    -2.5,
    1e308,
    -1e308,
    5e-324,
    1e-160,
    math.inf,
    None,
    1 / 3,
    0.49999999999999994,
]
PRICES = ["0.10", "0.30", "12.50", "999.99", "12345.67", "-3.00", None]
TEXTS = [
    "Drama|Comedy",
    "Drama",
    "",
    "|",
    "ÅSA",
    "anna_b",
    "ANNA B",
    "50%",
    "ß",
    "a\\b",
    "日本語",
    "😀x",
    None,
    "a.b",
    "\n",
]
DAYS = ["2024-02-29", "2023-03-01", "0001-01-01", "9999-12-31", "2024-12-30", "1999-12-31", None]
TIMES = ["2024-02-29 23:59:59.999999", "1970-01-01 00:00:00", "0001-01-01 12:00:00", None]

EXPRESSIONS = [
    "whole + count",
    "whole - count",
    "whole * count",
    "whole / count",
    "-whole",
    "whole * 3 - 1",
    "worth + whole",
    "worth - 0.1",
    "worth * worth",
    "worth / whole",
    "tiny * tiny",
    "worth / tiny",
    "tiny / worth",
    "price * count",
    "price + price",
    "price / 3",
    "abs(whole)",
    "abs(worth)",
    "abs(price)",
    "floor(worth)",
    "floor(price)",
    "round(worth)",
    "round(worth, 2)",
    "round(price, 1)",
    "round(whole / 7, 3)",
    "least(whole, 5)",
    "greatest(worth, 0)",
    "least(whole, worth, price)",
    "greatest(least(whole, 100), 0) * 2",
    "coalesce(whole, 0)",
    "coalesce(worth, whole, 1)",
    "coalesce(text, 'none')",
    "coalesce(kind, 'b')",
    "coalesce(day, born, DATE '2000-01-01')",
    "whole < count",
    "whole = worth",
    "price <= worth",
    "price = 0.1",
    "text < kind",
    "text = kind",
    "text <> 'Drama'",
    "day > born",
    "flag = (whole > count)",
    "time >= time",
    "text like '%a%'",
    "text like '_'",
    "text like 'Dr%|%'",
    "text like '50%'",
    "text like ''",
    "lower(text)",
    "upper(text)",
    "left(text, 2)",
    "lower(left(text, 3))",
    "weekday(day)",
    "weekday(time)",
    "hour_of_day(time)",
    "day_of_month(day)",
    "month_of_year(time)",
    "quarter_of_year(day)",
    "calendar_year(day)",
    "days(day, born)",
    "day - born",
    "age(born, day)",
    "age(born, DATE '2024-02-28')",
    "case when whole < 3 then 'few' when whole >= 3 then 'many' end",
    "case when text like 'D%' and not flag then whole else worth end",
    "case when kind = 'a' then day else born end",
    "case count when 1 then 10 when 2 then NULL else 0 end",
    "case when whole is null or worth > whole then TRUE else FALSE end",
    "per_unit(count(*))",
    "per_unit(count(text))",
    "per_unit(count(distinct text))",
    "per_unit(count(*) filter (where kind = 'a' or whole > count))",
    "per_unit(min(day))",
    "per_unit(max(time))",
    "per_unit(min(text))",
    "per_unit(max(text) filter (where flag))",
    "per_unit(sum(count))",
    "per_unit(sum(whole))",
    "per_unit(sum(worth))",
    "per_unit(sum(price))",
    "per_unit(avg(whole))",
    "per_unit(avg(worth))",
    "per_unit(avg(price) filter (where flag))",
    "per_unit(any(kind = 'a'))",
    "per_unit(any(worth > whole))",
    "days(per_unit(max(day)), per_unit(min(day)))",
    "least(per_unit(count(*)), 2) * count",
    "per_unit(min(day) filter (where kind = 'b' and \"day >= per_unit(min(day))\"))",
    "per_unit(max(whole * count))",
    "per_unit(count(*) filter (where days(day, per_unit(min(day))) <= 400))",
    "case when per_unit(count(*)) > 2 then text else 'rare' end",
]


def table() -> list[dict[str, Any]]:
    """Rows in which every value meets others."""
    rows = []
    for i in range(240):
        rows.append(
            {
                "row": i,
                "who": WHO[i * 7 % len(WHO)],
                "whole": WHOLES[i * 3 % len(WHOLES)],
                "count": i * 5 % 11,
                "worth": REALS[i * 11 % len(REALS)],
                "tiny": REALS[(i * 5 + 3) % len(REALS)],
                "price": PRICES[i % len(PRICES)],
                "text": TEXTS[i * 2 % len(TEXTS)],
                "kind": ["a", "b", "c", None][i % 4],
                "day": DAYS[i * 5 % len(DAYS)],
                "born": DAYS[i // 7 % len(DAYS)],
                "time": TIMES[i // 5 % len(TIMES)],
                "flag": [True, False, None][i % 3],
            }
        )
    return rows


ROWS = table()


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Source]:
    """The rows on one engine."""
    if request.param == "postgres":
        made = on_postgres(
            request.getfixturevalue("postgres").url(),
            '"row" bigint, who text, whole numeric, count int, worth float8, tiny float8, '
            "price numeric, text text, kind text, day date, born date, time timestamp, flag bool",
            [tuple(row.values()) for row in ROWS],
        )
    else:
        types = {
            "row": pa.int64(), "who": pa.string(), "whole": pa.int64(), "count": pa.int32(),
            "worth": pa.float64(), "tiny": pa.float64(), "price": pa.decimal128(18, 2),
            "text": pa.string(), "kind": pa.string(), "day": pa.date32(), "born": pa.date32(),
            "time": pa.timestamp("us"), "flag": pa.bool_(),
        }  # fmt: skip # a table

        def typed(name: str, value: Any) -> Any:
            if value is None:
                return None
            if name == "price":
                return Decimal(value)
            if name in ("day", "born"):
                return date.fromisoformat(value)
            return datetime.fromisoformat(value) if name == "time" else value

        rows = pa.table(
            {
                name: pa.array([typed(name, row[name]) for row in ROWS], kind)
                for name, kind in types.items()
            }
        )
        if request.param == "spark":
            made = on_spark(request.getfixturevalue("spark"), rows, tmp_path)
        else:
            import pyarrow.parquet as pq

            pq.write_table(rows, tmp_path / "rows.parquet")
            made = open_source(str(tmp_path / "rows.parquet"))
    yield made
    made.shut()


class Oracle:
    """Expressions by their meaning, in Python: slow, and sharing nothing with what is tested."""

    def __init__(self) -> None:
        self.rows = [self._read(row) for row in ROWS]
        self.units = defaultdict(list)
        for row in self.rows:
            if row["who"] is not None:
                self.units[row["who"]].append(row)
        self.columns = ComputedColumns(SCHEMA)

    def _read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """As the schema says."""
        read = dict(row)
        read["kind"] = row["kind"] if row["kind"] in ("a", "b") else None
        for name in ("day", "born"):
            read[name] = None if row[name] is None else date.fromisoformat(row[name])
        read["time"] = None if row["time"] is None else datetime.fromisoformat(row["time"])
        read["price"] = None if row["price"] is None else Decimal(row["price"])
        return read

    def value(self, expression: Expression, row: Mapping[str, Any]) -> Any:
        match expression:
            case Name(column):
                if column in row:
                    return row[column]
                return self.value(expression_in(column), row)
            case Literal(value):
                return value
            case Case(cases, otherwise):
                for where, value in cases:
                    if self.holds(where, row):
                        return self.value(value, row)
                return None if otherwise is None else self.value(otherwise, row)
            case PerUnit():
                return self.per_unit(expression, row)
            case Call(function, arguments):
                return self.call(function, arguments, row)

    def clip(self, expression: Expression, row: Mapping[str, Any]) -> Any:
        value, column = self.value(expression, row), self.columns.typed(expression)
        if value is None:
            return None
        value = value if column.kind == "integer" else float(value)
        value = min(max(value, column.lower), column.upper)
        return 0.0 if column.kind != "integer" and abs(value) < 1e-150 else value

    def call(self, function: str, given: Any, row: Mapping[str, Any]) -> Any:
        values = [self.value(part, row) for part in given]
        if function == "coalesce":
            return next((value for value in values if value is not None), None)
        if None in values:
            return None
        kinds = [self.columns.typed(part).kind for part in given]
        if function in ("add", "subtract", "multiply", "divide") and kinds != ["date", "date"]:
            left, right = (self.clip(part, row) for part in given)
            match function:
                case "add":
                    return left + right
                case "subtract":
                    return left - right
                case "multiply":
                    return left * right
            return None if right == 0 else float(left) / float(right)
        numbers = [float(v) if isinstance(v, Decimal) else v for v in values]
        match function:
            case "abs":
                return abs(self.clip(given[0], row))
            case "floor":
                return math.floor(self.clip(given[0], row))
            case "round":
                scale = 10.0 ** values[1] if len(values) == 2 else 1
                rounded = math.floor(float(self.clip(given[0], row)) * scale + 0.5)
                return rounded / scale if len(values) == 2 else rounded
            case "least":
                return min(numbers)
            case "greatest":
                return max(numbers)
            case "equal":
                return numbers[0] == numbers[1]
            case "unequal":
                return numbers[0] != numbers[1]
            case "below" | "at_most" | "above" | "at_least":
                left, right = (v.encode() if isinstance(v, str) else v for v in numbers)
                return {
                    "below": left < right, "at_most": left <= right,
                    "above": left > right, "at_least": left >= right,
                }[function]  # fmt: skip # a table
            case "like":
                pattern = re.escape(values[1]).replace("%", ".*").replace("_", ".")
                return re.fullmatch(pattern, values[0], re.DOTALL) is not None
            case "lower" | "upper":
                low, high = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                pair = (high, low) if function == "lower" else (low, high)
                return values[0].translate(str.maketrans(*pair))
            case "left":
                return values[0][: values[1]]
            case "weekday":
                return values[0].isoweekday()
            case "hour_of_day":
                return values[0].hour
            case "day_of_month":
                return values[0].day
            case "month_of_year":
                return values[0].month
            case "quarter_of_year":
                return (values[0].month + 2) // 3
            case "calendar_year":
                return values[0].year
            case "days" | "subtract":
                return (values[0] - values[1]) // timedelta(1)
            case "age":
                birth, at = values
                return at.year - birth.year - ((at.month, at.day) < (birth.month, birth.day))
        raise AssertionError(function)

    def per_unit(self, aggregate: PerUnit, row: Mapping[str, Any]) -> Any:
        if row["who"] is None:
            return None
        rows = [r for r in self.units[row["who"]] if self.holds(aggregate.where, r)]
        if aggregate.of is None:
            return len(rows)
        values = [v for r in rows if (v := self.value(aggregate.of, r)) is not None]
        match aggregate.function:
            case "count":
                return len(values)
            case "count_distinct":
                return len(set(values))
            case "min" | "max":
                pick = min if aggregate.function == "min" else max
                order = {v if not isinstance(v, str) else v.encode(): v for v in values}
                return order[pick(order)] if order else None
        kind = self.columns.typed(aggregate.of).kind
        clipped = [v for r in rows if (v := self.clip(aggregate.of, r)) is not None]
        if not clipped:
            return None
        whole = kind == "integer"
        total = sum(clipped if whole else (math.floor(v * 1e6 + 0.5) for v in clipped))
        total = min(max(total, -(2**53)), 2**53)
        if aggregate.function == "sum":
            return total if whole else float(total) / 1e6
        mean = float(total) / len(clipped)
        return mean if whole else mean / 1e6

    def holds(self, where: Filter | None, row: Mapping[str, Any]) -> bool:
        return where is None or self.truth(where, row) is True

    def truth(self, where: Filter, row: Mapping[str, Any]) -> bool | None:
        match where:
            case AllOf(parts):
                told = [self.truth(part, row) for part in parts]
                return False if False in told else None if None in told else True
            case AnyOf(parts):
                told = [self.truth(part, row) for part in parts]
                return True if True in told else None if None in told else False
            case Not(part):
                told = self.truth(part, row)
                return None if told is None else not told
        value = self.value(Name(where.column), row)
        match where:
            case Present():
                return value is not None
            case Equals(_, None):
                return value is None
        if value is None:
            return None
        match where:
            case Equals(_, wanted):
                return bool(value == wanted)
            case OneOf(_, wanted):
                return value in wanted
            case Between():
                number = float(value) if isinstance(value, Decimal) else value
                tests = {
                    "at_least": lambda b: number >= b, "above": lambda b: number > b,
                    "at_most": lambda b: number <= b, "below": lambda b: number < b,
                }  # fmt: skip # a table
                return all(tests[side](bound) for side, bound in where.sides)
        raise AssertionError(where)


def bits(value: Any, kind: str) -> Any:
    """A value, floats by their bits."""
    if value is None or kind != "real":
        return value
    number = float(value)
    return struct.pack(">d", 0.0 if number == 0 else number)


def test_every_function_on_every_engine(source: Source) -> None:
    """A real number that is 0 has no sign that anybody could see."""
    texts, columns = Texts(), ComputedColumns(SCHEMA)
    names = {text: f"computed {i}" for i, text in enumerate(EXPRESSIONS)}
    made = with_columns(source.declared(SCHEMA), SCHEMA, "who", names, texts, units=False)
    got = source.run(source.statement(made, texts)).to_pylist()
    assert len(got) == len(ROWS)
    oracle = Oracle()
    wrong = []
    for given in got:
        row = oracle.rows[given["row"]]
        for text in EXPRESSIONS:
            expression = expression_in(text)
            kind = columns.typed(expression).kind
            wanted = oracle.value(expression, row)
            if bits(given[names[text]], kind) != bits(wanted, kind):
                wrong.append((text, row, wanted, given[names[text]]))
    assert not wrong, "\n".join(f"{t}: {w!r}, got {g!r} of {r}" for t, r, w, g in wrong[:12])


def test_a_text_of_several_labels_on_every_engine(source: Source) -> None:
    """As often as a label stands in a text, empty ones too; a missing text is a missing label."""
    texts = Texts()
    names = {"split(text, '|')": "computed 0"}
    made = with_columns(source.declared(SCHEMA), SCHEMA, "who", names, texts, units=False)
    got = source.run(source.statement(made.select("row", "computed 0"), texts)).to_pylist()
    told = Counter((row["row"], row["computed 0"]) for row in got)
    wanted: Counter[tuple[int, str | None]] = Counter()
    for row in ROWS:
        labels = [None] if row["text"] is None else row["text"].split("|")
        wanted.update((row["row"], label) for label in labels)
    assert told == wanted
