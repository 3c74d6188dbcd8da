"""Questions about people: per-unit columns in Python and in SQL, names, prices, refusals."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import date, timedelta
from typing import Annotated, Any, ClassVar

import pyarrow as pa
import pytest

import farthing as fa
from farthing.engine.kinds.completed import completed_query
from farthing.engine.kinds.counts import CountQuery, SingleCountQuery
from farthing.engine.kinds.fields import COLUMN, COLUMNS
from farthing.engine.session import Session
from farthing.engine.show.captions import Names, Words
from farthing.engine.sources.duckdb import open_rows
from farthing.engine.sql.bounding import Bounded, counted_rows
from farthing.engine.sql.conditions import Rows
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Limits
from farthing.schema import Column, Schema
from tests.engine.conftest import Opened
from tests.engine.engines import measured

SCHEMA = Schema(
    (
        Column("member", "integer"),
        Column("day", "date"),
        Column("event", "text", categories=("look", "cart", "buy")),
        Column("price", "integer", lower=0, upper=40),
        Column("genres", "text"),
    )
)


def visits() -> list[dict[str, Any]]:
    """Members with 1 to 12 visits each."""
    draw = random.Random(5)
    rows = []
    for member in range(300):
        day = date(2025, 1, 1) + timedelta(draw.randrange(40))
        for _ in range(draw.randint(1, 12)):
            rows.append(
                {
                    "member": member,
                    "day": day,
                    "event": draw.choice(["look", "look", "cart", "buy"]),
                    "price": draw.randrange(60),
                    "genres": draw.choice(["Drama|Comedy", "Drama", None, "War|Drama|Drama"]),
                }
            )
            day += timedelta(draw.randrange(12))
    return rows


ROWS = visits()
BY_MEMBER: dict[int, list[dict[str, Any]]] = defaultdict(list)
for visit in ROWS:
    BY_MEMBER[visit["member"]].append(visit)


@pytest.fixture
def data(opened: Opened) -> Session:
    return opened(pa.Table.from_pylist(ROWS), schema=SCHEMA)


def exact(question: Any) -> Any:
    """What the statement of a question gives, without noise."""
    source = open_rows(pa.Table.from_pylist(ROWS))
    try:
        table = measured(source, SCHEMA, question.query)[1]
    finally:
        source.shut()
    if table.column_names == ["n"]:
        return int(table.column("n")[0].as_py())
    if "label" not in table.column_names:
        return table.to_pylist()
    labels, counts = (table.column(name).to_pylist() for name in ("label", "n"))
    return {label: int(count) for label, count in zip(labels, counts, strict=True)}


def test_how_many_people(data: Session) -> None:
    people = data.per_unit(visits=fa.rows(), first=fa.min("day"), last=fa.max("day"))
    sizes = {member: len(rows) for member, rows in BY_MEMBER.items()}
    assert exact(people.count(where="visits > 6")) == sum(n > 6 for n in sizes.values())
    spread = exact(people.histogram(fa.bins("visits", [1, 4, 8, 13])))
    assert spread == {
        "s[1, 4)": sum(1 <= n < 4 for n in sizes.values()),
        "s[4, 8)": sum(4 <= n < 8 for n in sizes.values()),
        "s[8, 13)": sum(8 <= n < 13 for n in sizes.values()),
    }
    stays = [
        max(r["day"] for r in rows) - min(r["day"] for r in rows) for rows in BY_MEMBER.values()
    ]
    long = people.count(where="last - first >= 30")
    assert exact(long) == sum(stay.days >= 30 for stay in stays)


def test_an_ordered_funnel(data: Session) -> None:
    funnel = data.per_unit(looked=fa.min("day", where="event = 'look'"))
    within = "event = 'cart' and day >= looked and days(day, looked) <= 14"
    funnel = funnel.per_unit(carted=fa.min("day", where=within))
    funnel = funnel.per_unit(paid=fa.min("day", where="event = 'buy' and day >= carted"))
    reached = Counter[str]()
    for rows in BY_MEMBER.values():
        looked = min((r["day"] for r in rows if r["event"] == "look"), default=None)
        if looked is None:
            continue
        carts = [r["day"] for r in rows if r["event"] == "cart"]
        carted = min((d for d in carts if 0 <= (d - looked).days <= 14), default=None)
        bought = [r["day"] for r in rows if r["event"] == "buy"]
        reached["looked"] += 1
        reached["carted"] += carted is not None
        reached["paid"] += carted is not None and any(d >= carted for d in bought)
    for step in ("looked", "carted", "paid"):
        assert exact(funnel.count(where=f"{step} is not null")) == reached[step]


def test_retention_and_several_labels_of_a_row(data: Session) -> None:
    people = data.per_unit(first=fa.min("day"))
    cohorts = exact(people.histogram([fa.month("first"), fa.month("day")], contribution_limit=9))
    pairs = {
        (member, min(r["day"] for r in rows).replace(day=1), row["day"].replace(day=1))
        for member, rows in BY_MEMBER.items()
        for row in rows
    }
    wanted = Counter(f"d{first:%Y%m%d}|d{month:%Y%m%d}" for _, first, month in pairs)
    assert cohorts == wanted
    genres = exact(data.histogram("split(genres, '|')", contribution_limit=9))
    labels = {(row["member"], label) for row in ROWS for label in (row["genres"] or "?").split("|")}
    told = Counter("n" if label == "?" else f"s{label}" for _, label in labels)
    assert genres == told


def test_a_person_counts_once_and_the_price_says_so(data: Session) -> None:
    people = data.per_unit(visits=fa.rows())
    one = data.count().plan().price
    assert people.histogram(fa.bins("visits", [0, 5, 9])).plan().price == one
    mean = completed_query(people.mean("visits", upper=20).query, SCHEMA, "member", Limits())
    assert mean.per_key_limit == 1
    total = people.sum("visits", upper=20)
    assert exact(total) == len(ROWS)
    rows = people.count(where="visits > 3", per_key_limit=20)
    assert exact(rows) == sum(len(r) for r in BY_MEMBER.values() if len(r) > 3)


def test_a_ratio_of_sums_and_its_interval(data: Session) -> None:
    """The totals are exact, and the interval holds about as often as it says."""
    asked = data.ratio("price", "weekday(day)", by="event", per_key_limit=4, contribution_limit=3)
    sums = {"look": [0, 0], "cart": [0, 0], "buy": [0, 0]}
    for rows in BY_MEMBER.values():
        for event, totals in sums.items():
            own = [r for r in rows if r["event"] == event]
            totals[0] += min(sum(r["day"].isoweekday() for r in own), 28)
            totals[1] += min(sum(min(r["price"], 40) for r in own), 160)
    source = open_rows(pa.Table.from_pylist(ROWS))
    whole, table, bounded = measured(source, SCHEMA, asked.query)
    source.shut()
    told = {row["label"]: [int(row["n"]), int(row["n1"])] for row in table.to_pylist()}
    assert told == {f"s{event}": totals for event, totals in sums.items()}
    assert (bounded.per_key_limit, bounded.others) == (28, (160,))
    mechanism = whole.mechanism_for({"count": fa.Gaussian(3.0)})
    groups, held = whole.data(table), 0
    for _ in range(400):
        intervals = whole.errors(mechanism, mechanism.run(groups), 0.95)
        ratios = [totals[1] / totals[0] for totals in (sums["look"], sums["cart"], sums["buy"])]
        held += sum(low <= r <= high for (low, high), r in zip(intervals, ratios, strict=True))
    assert 0.93 <= held / 1200 <= 0.98
    answer = data.ratio("price", "weekday(day)", per_key_limit=4).run()
    assert answer.caption.startswith("The sum of `price` over the sum of `weekday(day)`")


SAME = {
    "SELECT SUM(price) / SUM(weekday(day)) FROM events OPTIONS (per_key_limit = 2)": (
        lambda d: d.ratio("price", "weekday(day)", per_key_limit=2)
    ),
    "SELECT COUNT(*) FROM (SELECT member, COUNT(*) AS n FROM events GROUP BY member) t "
    "WHERE n > 3": (lambda d: d.per_unit(n=fa.rows()).count(where="n > 3")),
    "SELECT AVG(n) FROM (SELECT member, COUNT(DISTINCT event) AS n FROM events GROUP BY member) t "
    "OPTIONS (upper = 3)": lambda d: d.per_unit(n=fa.distinct("event")).mean("n", upper=3),
    "WITH f AS (SELECT member, MIN(day) AS first FROM events GROUP BY member) SELECT "
    "DATE_TRUNC('month', first), COUNT(DISTINCT member) FROM events JOIN f USING (member) "
    "GROUP BY 1": (lambda d: d.per_unit(first=fa.min("day")).histogram(fa.month("first"))),
    "SELECT COUNT(DISTINCT member) FROM events WHERE member IN "
    "(SELECT member FROM events WHERE event = 'buy')": (
        lambda d: d.count(where=f"{fa.rows('event = ' + repr('buy'))} > 0")
    ),
    "SELECT COUNT(DISTINCT member) FROM events AS e WHERE NOT EXISTS (SELECT 1 FROM events AS b "
    "WHERE b.member = e.member AND b.price > 30)": (
        lambda d: d.count(where={"not": {fa.rows("price > 30"): {"above": 0}}})
    ),
    "SELECT COUNT(*) FROM (SELECT member FROM events GROUP BY member "
    "HAVING MAX(day) - MIN(day) > 9) t": (
        lambda d: d.per_unit(a=fa.max("day"), b=fa.min("day")).count(where="a - b > 9")
    ),
    "SELECT EXTRACT(MONTH FROM day), COUNT(DISTINCT member) FROM events WHERE price * 2 > 10 "
    "GROUP BY 1 OPTIONS (contribution_limit = 2)": (
        lambda d: d.histogram("month_of_year(day)", where="price*2 > 10", contribution_limit=2)
    ),
    "SELECT SUM(CASE WHEN event = 'buy' THEN price ELSE 0 END) FROM events "
    "OPTIONS (per_key_limit = 3)": (
        lambda d: d.sum("case when event = 'buy' then price else 0 end", per_key_limit=3)
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_sql_asks_the_same(data: Session, text: str) -> None:
    said, wanted = data.sql(text), SAME[text](data)
    forms = [completed_query(q.query, SCHEMA, "member", Limits()) for q in (said, wanted)]
    assert forms[0] == forms[1]
    assert exact(said) == exact(wanted)
    again = data.sql(wanted.to_sql())
    assert completed_query(again.query, SCHEMA, "member", Limits()) == forms[0]


def test_one_question_whatever_its_spelling(data: Session) -> None:
    first = data.count(where="price*2>10").run()
    again = data.count(where="(price * 2) > 10.0").run()
    assert (again.value, again.entry) == (first.value, first.entry)
    named = data.with_columns(double="price * 2").count(where="double > 10").run()
    assert named.entry == first.entry
    assert "`price` is clipped to the range 0 to 40" in first.caption


REFUSED = {
    "price * nothing > 3": "there is no column nothing",
    "pric * 2 > 3": "did you mean price",
    "event * 2 > 3": "arithmetic is for numbers, but event is text",
    "per_unit(count(*)) * 2 > 3": "needs bounds",
    "left(genres, price) = 'a'": "a value must stand",
    "member * 2 > 3": "needs bounds",
    "per_unit(max(member)) > 3": "unit of privacy",
    "lower(split(genres, '|')) = 'a'": "labels to group by, and nothing else",
    "split(genres, '|') = 'Drama'": "in a filter, use like",
    "split(split(genres, '|'), ',') = 'a'": "labels to group by, and nothing else",
    "per_unit(max(price + per_unit(max(price + per_unit(max(price + per_unit(max(price))))))))"
    " > 1": "per_unit nests at most 3 times",
    " + ".join(["price"] * 100) + " > 1": "nests at most",
    "NULL is null": "NULL: a column must stand here",
    "genres < price": "text cannot be compared with integer",
    "event = look": "a text is written in single quotes",
    "weekday(price) = 3": "this is for date or timestamp, but price is integer",
    "genres like 'a\\b'": "no backslash",
}


@pytest.mark.parametrize("where", REFUSED)
def test_what_is_refused_before_anything_is_paid(data: Session, where: str) -> None:
    before = data.remaining()
    with pytest.raises(InvalidInput, match=REFUSED[where]):
        data.count(where=where).run()
    assert data.remaining() == before


def test_names_that_engines_take_for_one_another(data: Session) -> None:
    """DuckDB ignores case in names, and PostgreSQL cuts them."""
    both = data.count(where="genres like 'D%' and not genres like 'd%'")
    assert exact(both) == len({r["member"] for r in ROWS if (r["genres"] or "").startswith("D")})
    long = "a" * 70
    either = data.count(where=f"genres like 'D%{long}' or genres like 'D%' or genres like 'W%'")
    assert exact(either) == len({r["member"] for r in ROWS if r["genres"] is not None})


def test_values_of_two_types_are_two(data: Session) -> None:
    where = "coalesce(price, 1) = 1 and case when price > 3 then TRUE else FALSE end"
    with pytest.raises(InvalidInput, match="different kinds"):
        data.count(where="coalesce(price, 1) = 1 and greatest(price, TRUE) > 1").plan()
    assert data.count(where=where).plan().price.farthings > 0
    total = data.sum("coalesce(case when event = 'buy' then price / 2 end, 0)", per_key_limit=3)
    assert total.run().value is not None


def test_reading_takes_no_longer_for_nested_texts() -> None:
    text = "price"
    for _ in range(40):
        text = f'case when "{text.replace(chr(34), 2 * chr(34))}" > 1 then 1 else 0 end'
        if len(text) > 1900:
            break
    with pytest.raises(InvalidInput):
        completed_query(CountQuery(where={text: {"above": 1}}), SCHEMA, "member", Limits())


def test_names_of_computed_columns(data: Session) -> None:
    with pytest.raises(InvalidInput, match="there is a column price already"):
        data.with_columns(price="price * 2")
    with pytest.raises(InvalidInput, match="a value for each row"):
        data.per_unit(double="price * 2")
    with pytest.raises(InvalidInput, match="there is no column first"):
        data.with_columns(day_of="days(day, first)")
    chained = data.per_unit(first=fa.min("day")).with_columns(since="days(day, first)")
    assert chained.mean("since", lower=0, upper=90, per_key_limit=12).plan().price.farthings > 0


def test_a_column_that_the_owner_declares(opened: Opened) -> None:
    spent = Column("spent", "integer", lower=0, upper=50, expression="price * 2", title="spending")
    data = opened(pa.Table.from_pylist(ROWS), schema=Schema((*SCHEMA.columns, spent)))
    answer = data.sum("spent", per_key_limit=1).run()
    assert answer.caption.startswith("The sum of spending")
    assert data.count(where="spent > 60").plan().price == data.count().plan().price


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Column("spent", "text", expression="price * 2"), "is declared text, but it is integer"),
        (Column("spent", "integer", expression="spent * 2"), "there is no column spent"),
        (Column("spent", "integer", expression="pric * 2"), "did you mean price"),
        (Column("spent", "integer", expression="price +"), "cannot be read"),
    ],
)
def test_what_an_owner_cannot_declare(opened: Opened, column: Column, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        opened(pa.Table.from_pylist(ROWS), schema=Schema((*SCHEMA.columns, column)))


def test_declared_columns_of_declared_columns(opened: Opened) -> None:
    columns = (
        Column("double", "integer", expression="price * 2", lower=0, upper=80),
        Column("fourfold", "integer", expression="double * 2", lower=0, upper=160),
        Column("visits", "integer", expression="per_unit(count(*))", lower=0, upper=20),
    )
    schema = Schema((*SCHEMA.columns, *columns))
    data = opened(pa.Table.from_pylist(ROWS), schema=schema)
    source = open_rows(pa.Table.from_pylist(ROWS))
    found = measured(source, schema, data.count(where="fourfold > 100 and visits > 3").query)[1]
    source.shut()
    wanted = {
        row["member"]
        for row in ROWS
        if min(row["price"], 40) * 4 > 100 and len(BY_MEMBER[row["member"]]) > 3
    }
    assert int(found.column("n")[0].as_py()) == len(wanted)
    assert data.histogram("visits").plan().query.contribution_limit == 1


@dataclass(frozen=True, slots=True)
class PresentQuery(SingleCountQuery):
    """How many units have a row in which none of these columns is missing."""

    checked: Annotated[str, "A column.", COLUMN]
    _: KW_ONLY
    more: Annotated[str | Iterable[str], "More columns.", COLUMNS] = ("day",)
    kind: ClassVar[str] = "present"
    label: ClassVar[str] = "present"
    sensitivity: ClassVar[int] = 1

    def columns(self) -> frozenset[str]:
        return frozenset((self.checked, *self.more))

    def bounded(self, rows: Rows) -> Bounded:
        table = rows.table
        for name in self.columns():
            table = table.filter(table[name].notnull())
        return counted_rows(table, (table[rows.unit], rows.kinds[rows.unit]), 1)

    def words(self, names: Names) -> Words:
        subject = f"The number of {names.unit.several}"
        return Words(subject=subject, contribution="1 of the count", described=self.kind)


def test_a_field_says_that_it_holds_columns(data: Session) -> None:
    """Expressions and names of computed columns work in it, whatever it is called."""
    shop = data.with_columns(dear="case when price > 30 then 1 end")
    asked = shop.question(PresentQuery("dear", more=["split(genres, '|')", "day"]))
    assert asked.query.checked == "case when price > 30 then 1 end"
    wanted = {r["member"] for r in ROWS if r["price"] > 30 and r["genres"] is not None}
    assert exact(asked) == len(wanted)
    with pytest.raises(InvalidInput, match="each of them once"):
        PresentQuery("price", more=[])
    with pytest.raises(InvalidInput, match="unit of privacy"):
        shop.question(PresentQuery("day", more="member")).plan()
