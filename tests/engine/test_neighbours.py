"""One more unit changes at most Δ counts, each by at most τ, none down: in the SQL that runs.

Tables with everything in them that an engine has: texts that differ in case, accents and
composition under a collation that folds them, missing units and values, NaN and infinities, the
extremes of every type. A pair of tables differs by one unit. Many pairs are in one table, told
apart by a column that is part of the key, so that one statement holds many of them.

FARTHING_PAIRS=20000 says how many pairs each engine gets.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from farthing.engine.errors import EngineFailure
from farthing.engine.filters import filter_from
from farthing.engine.kinds import KINDS as ALL_KINDS
from farthing.engine.kinds import query_from
from farthing.engine.kinds.base import COUNT, LEAK, SELECT, Query
from farthing.engine.kinds.bound import BoundQuery
from farthing.engine.kinds.counts import DistinctQuery
from farthing.engine.kinds.limit import LimitQuery
from farthing.engine.kinds.moments import CorrelationQuery, CovarianceQuery, RegressionQuery
from farthing.engine.kinds.quantile import QuantileQuery
from farthing.engine.kinds.totals import MeanQuery, StandardDeviationQuery, SumQuery, VarianceQuery
from farthing.engine.sources import duckdb_files
from farthing.engine.sources.base import Source
from farthing.engine.sources.duckdb import DuckDBSource
from farthing.engine.sources.opening import open_source
from farthing.engine.sql import measuring
from farthing.engine.sql.bounding import (
    LABEL,
    Bounded,
    bounded_histogram,
    counted_rows,
    counts_of,
    labels_and_counts,
    labels_of_units,
    largest,
    pairs_above,
)
from farthing.engine.sql.conditions import Rows, between, condition, fixed_point
from farthing.engine.sql.measuring import UNITS, total_name
from farthing.engine.sql.statement import Texts
from farthing.guarantees.kinds import ApproximateDP, BoundedRange, PureDP
from farthing.schema import BOOLEAN, DATE, INTEGER, REAL, TEXT, Column, Schema
from tests.engine.engines import clipped_sums, measured

PAIRS = int(os.environ.get("FARTHING_PAIRS", "200"))
SCHEMA = Schema(
    (
        Column("pair", INTEGER),
        Column("member", TEXT),
        Column("text", TEXT),
        Column("whole", INTEGER),
        Column("worth", REAL),
        Column("day", DATE),
        Column("flag", BOOLEAN),
    )
)
#: The same with bounds that most numbers lie outside of, and that move keys and values.
BOUNDED = Schema(
    tuple(
        replace(column, lower=0, upper=1.5) if column.name in ("whole", "worth") else column
        for column in SCHEMA.columns
    )
)
#: Texts that collations take for one another.
FOLDED = ["a", "A", "á", "A\u0301", "ß", "SS", "ss", "ı", "I", "i", "İ", "a ", "", "~|", "ﬀ", "ff"]
WHOLES = [0, 1, 2, -1, 2**63 - 1, -(2**63), 2**63, 10**30, -(10**37), None]
REALS = ["0", "-0", "1.5", "3", "1e308", "-1e308", "5e-324", "inf", "-inf", "nan", None]
DAYS = ["0001-01-01", "9999-12-31", "2013-01-05", "infinity", "-infinity", "far", None]

#: A row: pair, unit, text, whole number, real number, day, truth value.
Row = tuple[int, str | None, str | None, int | None, str | None, str | None, bool | None]


@dataclass(frozen=True)
class Question:
    """What is asked of both tables."""

    by: tuple[str, ...]
    limit: int | None
    per_key: int
    where: Any
    places: int
    seed: int


WHERES = st.sampled_from(
    [
        None,
        None,
        {"text": ["a", "SS", None]},
        {"text": {"at_least": "A", "below": "b"}},
        {"whole": {"above": -5}},
        {"worth": {"below": 2.5}},
        {"any_of": [{"flag": True}, {"day": {"at_least": {"date": "2013-01-01"}}}]},
        {"all_of": [{"whole": [1, 2, 2**63 - 1]}, {"text": {"present": True}}]},
        {"not": {"text": ["a", "SS"], "worth": [1.5, 3]}},
        {"not": {"any_of": [{"flag": True}, {"whole": {"below": 1}}]}},
        {"text": "nobody has this"},
    ]
)
QUESTIONS = st.builds(
    Question,
    by=st.lists(
        st.sampled_from(["text", "whole", "day", "flag", "worth"]),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(tuple),
    limit=st.sampled_from([1, 1, 2, 3, None]),
    per_key=st.integers(1, 3),
    where=WHERES,
    places=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
POOLS = st.lists(
    st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=4),
    max_size=4,
)


def tables(seed: int, pool: list[str], pairs: int) -> tuple[list[Row], list[Row]]:
    """Two tables: in each pair the second has one unit more."""
    draw = random.Random(seed)
    texts = [None, *draw.sample(FOLDED, 6), *pool]

    def row(pair: int, who: str | None) -> Row:
        return (
            pair,
            who,
            draw.choice(texts),
            draw.choice(WHOLES),
            draw.choice(REALS),
            draw.choice(DAYS),
            draw.choice([True, False, None]),
        )

    less, extra = [], []
    for pair in range(pairs):
        for _ in range(draw.randrange(14)):
            who = draw.choice(["u", "U", "ú", "v", None])
            less.append(row(pair, None if who is None else f"{pair} {who}"))
        whose = f"{pair} {draw.choice(['w', 'W', 'u ', 'V'])}"
        extra += [row(pair, whose) for _ in range(draw.randint(1, 8))]
    more = [*less, *extra]
    draw.shuffle(more)
    return less, more


def bounded(rows: Any, question: Question) -> Bounded:
    """The histogram of the pair and the keys; a real number is a key as quantiles have it."""
    keys = []
    for name in ("pair", *question.by):
        if name == "worth":
            worth = between(fixed_point(rows.worth, REAL, question.places), -300, 300)
            keys.append((worth, INTEGER))
        else:
            keys.append((rows[name], SCHEMA.kinds[name]))
    return bounded_histogram(
        rows,
        (rows.member, TEXT),
        keys,
        secret="key",
        contribution_limit=question.limit,
        per_key_limit=question.per_key,
    )


def kept(source: Source, where: Any, texts: Texts) -> Any:
    table = source.declared(SCHEMA)
    if where is None:
        return table
    return table.filter(condition(table, filter_from(where), SCHEMA.kinds, texts))


def counts(source: Source, question: Question) -> dict[str, int]:
    texts = Texts()
    expression = bounded(kept(source, question.where, texts), question).expression
    labels, found = labels_and_counts(source.run(source.statement(expression, texts)))
    assert len(set(labels)) == len(labels)
    return dict(zip(labels.tolist(), found.tolist(), strict=True))


def check_counts(less: dict[str, int], more: dict[str, int], question: Question) -> None:
    """At most Δ counts of a pair change, each by at most τ, none down."""
    changed: dict[str, int] = defaultdict(int)
    for label in less.keys() | more.keys():
        change = more.get(label, 0) - less.get(label, 0)
        assert 0 <= change <= question.per_key, label
        changed[label.split("|")[0]] += change > 0
    assert question.limit is None or max(changed.values(), default=0) <= question.limit


def check_candidates(source: Source, question: Question, whole: dict[str, int]) -> None:
    """The largest counts, ties in the order of Python's texts."""
    ordered = sorted(whole.items(), key=lambda pair: (-pair[1], pair[0]))
    size = 1 + question.seed % 7
    texts = Texts()
    expression = bounded(kept(source, question.where, texts), question).expression
    statement = source.statement(largest(expression, size), texts)
    labels, found = labels_and_counts(source.run(statement))
    pairs = zip(labels.tolist(), found.tolist(), strict=True)
    assert set(pairs) == set(ordered[:size])


def check_numbers(less: Source, more: Source, question: Question) -> None:
    """A count and two sums over the first pair alone."""
    where = {"pair": 0} if question.where is None else {"all_of": [{"pair": 0}, question.where]}
    lower, upper = -7, 5

    def number(source: Source, ask: Callable[[Any], Bounded]) -> int:
        texts = Texts()
        expression = ask(kept(source, where, texts)).expression
        return int(counts_of(source.run(source.statement(expression, texts)))[0])

    def count(rows: Any) -> Bounded:
        return counted_rows(rows, (rows.member, TEXT), question.per_key)

    def total(rows: Any) -> Bounded:
        return clipped_sums(rows, (rows.member, TEXT), rows.whole, lower, upper)

    def worth(rows: Any) -> Bounded:
        value = fixed_point(rows.worth, REAL, question.places)
        return clipped_sums(rows, (rows.member, TEXT), value, lower, upper)

    def above(rows: Any) -> Bounded:
        keys = [(rows[name], SCHEMA.kinds[name]) for name in question.by if name != "worth"]
        units = labels_of_units(rows, (rows.member, TEXT), keys, 4)
        return pairs_above(units, 1, 4)

    assert 0 <= number(more, above) - number(less, above) <= 3
    assert 0 <= number(more, count) - number(less, count) <= question.per_key
    for ask in (total, worth):
        assert lower <= number(more, ask) - number(less, ask) <= upper


def check_distinct(less: Source, more: Source, question: Question) -> None:
    """The numbers of distinct values of all labels of a pair grow by at most Δ, none falls."""
    draw = random.Random(question.seed)
    column = draw.choice(["text", "whole", "day", "flag"])
    names = {"worth": "bins(worth, -1e300, 0, 1.5, 2)", "day": draw.choice(["day", "year(day)"])}
    by = ("pair", *(names.get(name, name) for name in question.by))
    limit = question.limit or 2
    query = DistinctQuery(column, by=by, contribution_limit=limit, where=question.where)

    def numbers(source: Source) -> dict[str, int]:
        _, rows, _ = measured(source, SCHEMA, query)
        labels, found = labels_and_counts(rows)
        return dict(zip(labels.tolist(), found.tolist(), strict=True))

    before, after = numbers(less), numbers(more)
    grown: dict[str, int] = defaultdict(int)
    for label in before.keys() | after.keys():
        change = after.get(label, 0) - before.get(label, 0)
        assert change >= 0, label
        grown[label.split("|")[0]] += change
    assert max(grown.values(), default=0) <= limit


def check_totals(less: Source, more: Source, question: Question) -> None:
    """Totals of a limit that is looked for, over all pairs, move apart within the range."""
    by = [name for name in question.by if name != "worth"] or ["text"]

    def totals(source: Source, query: LimitQuery) -> list[int]:
        texts = Texts()
        where = {"pair": 0} if question.where is None else {"all_of": [{"pair": 0}, question.where]}
        table = kept(source, where, texts)
        rows = Rows(table, "member", SCHEMA.kinds, "key", texts)
        statement = source.statement(query.bounded(rows).expression, texts)
        return query.data(source.run(statement)).counts.tolist()

    for labels in (None, 3):
        query = LimitQuery(by, limits=(1, 2, 3), noise=(0.4, 0.7, 1.0), labels=labels)
        pairs = zip(totals(less, query), totals(more, query), strict=True)
        moved = [after - before for before, after in pairs]
        assert max(moved) - min(moved) <= query.score_range


#: Kinds whose statements give several numbers for a label, or weights of values.
MEASURES = (MeanQuery, VarianceQuery, StandardDeviationQuery, SumQuery, QuantileQuery)
MEASURES = (*MEASURES, CovarianceQuery, CorrelationQuery, RegressionQuery, BoundQuery)
MEASURED = {*(kind.kind for kind in MEASURES), "min", "max"}
BOUNDS = [("whole", -7, 5, 0), ("whole", -(2**40), 2**40, 0), ("worth", -2, 3, 1)]


def beside(kind: Any, column: str) -> dict[str, Any]:
    """A second column, for kinds that have one."""
    if "on" not in kind.field_names():
        return {}
    if column == "whole":
        return {"on": ["worth"], "on_lower": [-2], "on_upper": [3], "on_places": [1]}
    return {"on": ["whole"], "on_lower": [-7], "on_upper": [5]}


def measures(question: Question) -> Iterator[Query]:
    """One kind with the keys of the question (labels found, or listed) and one without."""
    draw = random.Random(question.seed)
    names = {"worth": "bins(worth, -1e300, 0, 1.5, 2)", "day": draw.choice(["day", "month(day)"])}
    keys = ("pair", *(names.get(name, name) for name in question.by))
    for by in (keys, None):
        column, lower, upper, places = draw.choice(BOUNDS)
        limit = {"contribution_limit": question.limit or 1} if by else {}
        where = question.where
        if by is None:
            where = {"pair": 0} if where is None else {"all_of": [{"pair": 0}, where]}
        asked = {"by": by, "lower": lower, "upper": upper, "places": places, "where": where}
        kind = draw.choice(MEASURES)
        asked |= beside(kind, column)
        if kind is BoundQuery:
            del asked["lower"], asked["upper"]
            if draw.random() < 0.5:  # one answer for all labels: of one pair
                pair = {"pair": 0}
                where = pair if question.where is None else {"all_of": [pair, question.where]}
                asked |= {"sums": True, "by": keys[1:] if by else None, "where": where}
        yield kind(column, **asked, **limit, per_key_limit=question.per_key)


def check_measures(less: Source, more: Source, question: Question) -> None:
    """Each number of a label changes by at most its limit, in at most Δ labels of a pair."""
    schema = BOUNDED if question.seed % 2 else SCHEMA
    for query in measures(question):
        before, after = (changes(source, query, schema) for source in (less, more))
        whole, limits = after[1], after[2]
        changed: dict[str, int] = defaultdict(int)
        for label in before[0].keys() | after[0].keys():
            moved = after[0][label] - before[0][label]
            sizes = moved.sizes()
            assert all(size <= most for size, most in zip(sizes, limits, strict=True)), query
            assert not whole.in_ranks or moved.falls == 0, query
            changed[label.split("|")[0]] += any(sizes)
        most = 1 if not whole.key else whole.labels_of_a_unit
        assert max(changed.values(), default=0) <= most, query


#: Every kind, and what it needs besides a key and a filter.
KINDS: dict[str, dict[str, Any]] = {
    "count": {},
    "distinct": {"column": "text", "contribution_limit": 2},
    "histogram": {"by": True, "contribution_limit": 2, "per_key_limit": 2},
    "rollup": {"by": True, "contribution_limit": 2, "per_key_limit": 2},
    "top_k": {"by": True, "k": 1, "counts": True},
    "loss": {"by": True, "contribution_limit": 1, "most": 3},
    "limit": {"by": True, "limits": [1, 2], "noise": [0.4, 0.7]},
    **{kind: {"by": None, "per_key_limit": 2} for kind in MEASURED},
    "quantile": {"by": None, "per_key_limit": 2, "probability": [0.25, 0.5, 0.75]},
}
DERIVED = (
    *("text", "whole", "flag", "day", "week(day)", "month(day)", "quarter(day)", "year(day)"),
    *("bins(worth, -1e300, 0, 1.5, 2)", "bins(whole, -5, 0, 5)"),
)
#: Items that pay for whatever is asked.
PAID = {SELECT: BoundedRange(1.0), COUNT: PureDP(1.0), LEAK: ApproximateDP(0.0, 1e-6)}


def check_answered(source: Source, question: Question) -> None:
    """Every kind, with keys of every kind, known and found, is answered: a question that fails on
    any table is a finding. The first pair may have no rows, or rows of nobody."""
    draw = random.Random(question.seed)
    for kind in draw.sample(sorted(KINDS), 3):
        where = [{"pair": 0}, *([] if question.where is None else [question.where])]
        asked = {"kind": kind, "where": {"all_of": where}, **KINDS[kind]}
        if kind in MEASURED:
            column, lower, upper, places = draw.choice(BOUNDS)
            asked |= {"column": column, "places": places}
            if kind != "bound":
                asked |= {"lower": lower, "upper": upper}
            asked |= beside(ALL_KINDS[kind], column)
            asked["by"] = draw.choice([None, True])
        if kind == "distinct":
            asked["by"] = draw.choice([None, True])
        if asked.get("by"):
            asked["by"] = draw.sample(DERIVED, draw.randint(1, 2))
            asked["contribution_limit"] = asked.get("contribution_limit", 1)
            if asked["by"] in (["text"], ["flag"]):
                known = {"text": ["a", "SS", None], "flag": [True, None]}[asked["by"][0]]
                asked["categories"] = draw.choice([None, known])
        if kind == "rollup":  # its labels are known, and none is missing
            labels = [("a", True), ("SS", False), ("a", False)]
            asked |= {"by": ["text", "flag"], "categories": labels}
        asked = {name: value for name, value in asked.items() if value is not None}
        if kind in ("top_k", "limit"):
            del asked["contribution_limit"]
        whole, rows, _ = measured(source, SCHEMA, query_from(asked))
        assert all(column.null_count == 0 for column in rows.columns), asked
        paid = {role: PAID[role] for role in whole.roles()}
        whole.mechanism_for(paid).run(whole.data(rows))


@dataclass
class Numbers:
    """The numbers of a label: its totals; or what each value weighs, and how many units it has."""

    totals: Counter[Any]
    weights: Counter[Any]

    def __sub__(self, other: Numbers) -> Numbers:
        left, right = (Counter(n.totals) for n in (self, other))
        left.subtract(right)
        heavy, light = (Counter(n.weights) for n in (self, other))
        heavy.subtract(light)
        return Numbers(left, heavy)

    def sizes(self) -> list[int]:
        """How far apart they are: of values all weights together."""
        weights = [sum(map(abs, self.weights.values()))] if self.weights else []
        return weights + [abs(self.totals[place]) for place in sorted(self.totals)]

    @property
    def falls(self) -> int:
        return sum(weight < 0 for weight in self.weights.values())


def changes(
    source: Source, query: Query, schema: Schema
) -> tuple[dict[str, Numbers], Any, tuple[int, ...]]:
    """The numbers of every label, from the rows of the statement."""
    whole, rows, limit = measured(source, schema, query)
    limits = (limit.per_key_limit, *limit.others)
    counted = range(len(limits) - 1) if whole.in_ranks else range(len(limits))
    weighed = {"nothing": 0} if whole.in_ranks else {}
    found: dict[str, Numbers] = defaultdict(
        lambda: Numbers(Counter(dict.fromkeys(counted, 0)), Counter(weighed))
    )
    for row in rows.to_pylist():
        numbers = found[row.get(LABEL, "")]
        if not whole.in_ranks:
            numbers.totals.update({place: int(row[total_name(place)]) for place in counted})
        elif row["n"] == 0:
            numbers.totals[0] += int(row[UNITS])
        else:
            numbers.weights[row["value"]] += int(row["n"])
    return found, whole, limits


Place = Callable[[list[Row]], Source]


def hold(place: Place, pairs: int, *, examples: int, phases: Any = tuple(Phase)) -> None:
    """The property, for as many pairs as this engine gets."""

    @settings(
        max_examples=examples,
        phases=[phase for phase in phases if phase is not Phase.explain],
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    @given(QUESTIONS, POOLS)
    def neighbours(question: Question, pool: list[str]) -> None:
        less, more = map(place, tables(question.seed, pool, pairs))
        try:
            before, after = counts(less, question), counts(more, question)
            check_counts(before, after, question)
            check_candidates(more, question, after)
            check_numbers(less, more, question)
            check_distinct(less, more, question)
            check_totals(less, more, question)
            check_measures(less, more, question)
            for source in (less, more):
                check_answered(source, question)
        finally:
            less.shut()
            more.shut()

    neighbours()


def as_arrow(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 7
    types = (
        pa.int64(),
        pa.string(),
        pa.string(),
        pa.string(),
        pa.string(),
        pa.string(),
        pa.bool_(),
    )
    whole = [None if value is None else str(value) for value in columns[3]]
    arrays = [*columns[:3], whole, *columns[4:]]
    named = zip(SCHEMA.kinds, arrays, types, strict=True)
    return pa.table({name: pa.array(cells, dtype) for name, cells, dtype in named})


def in_duckdb(folder: Path) -> Place:
    """A file whose texts fold case and accents, with the widest types there are."""

    def place(rows: list[Row]) -> Source:
        name = f"t{len(list(folder.iterdir()))}"
        path = folder / f"{name}.duckdb"
        with duckdb.connect(path) as connection:
            connection.register("given", as_arrow(rows))
            connection.execute(
                "CREATE TABLE t (pair UTINYINT, member VARCHAR COLLATE NOCASE.NOACCENT, "
                "text VARCHAR COLLATE NOCASE.NOACCENT, whole HUGEINT, worth DOUBLE, day DATE, "
                "flag BOOLEAN)"
            )
            connection.execute(
                "INSERT INTO t SELECT pair, member, text, whole, worth, "
                "CASE day WHEN 'far' THEN '5881580-07-10' ELSE day END, flag FROM given"
            )
        return open_source(path, table="t", memory="1GB")

    return place


def in_parquet(folder: Path) -> Place:
    """A file with types of its own: texts, decimals, floats, days as numbers."""

    def place(rows: list[Row]) -> Source:
        path = folder / f"t{len(list(folder.iterdir()))}.parquet"
        pq.write_table(typed(rows), path)
        return open_source(path, memory="1GB")

    return place


def typed(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 7
    far = {"infinity": 2**31 - 1, "-infinity": -(2**31), "far": 10**8, None: None}
    days = [
        far[d] if d in far else (date.fromisoformat(d) - date(1970, 1, 1)).days for d in columns[5]
    ]
    given = as_arrow(rows)
    return pa.table(
        {
            "pair": given["pair"].cast(pa.int16()),
            "member": given["member"],
            "text": given["text"],
            "whole": given["whole"].cast(pa.decimal128(38, 0)),
            "worth": given["worth"].cast(pa.float64()),
            "day": pa.array(days, pa.int32()).cast(pa.date32()),
            "flag": given["flag"],
        }
    )


def in_spark(spark: Any, folder: Path) -> Place:
    """Parquet files whose texts get a collation that folds case."""

    def place(rows: list[Row]) -> Source:
        path = folder / f"t{len(list(folder.iterdir()))}.parquet"
        pq.write_table(typed(rows), path)
        frame = spark.read.parquet(str(path)).selectExpr(
            "pair",
            "collate(member, 'UNICODE_CI') AS member",
            "collate(text, 'UTF8_LCASE') AS text",
            *["whole", "worth", "day", "flag"],
        )
        return open_source(frame, spark=spark)

    return place


def in_postgres(url: str) -> Place:
    """A table with a type of text that folds case, as the extension citext makes it."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT to_regtype('citext')").fetchone() == (None,):
            make_citext(connection)

    def place(rows: list[Row]) -> Source:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "DROP TABLE IF EXISTS neighbours; CREATE TABLE neighbours (pair smallint, "
                "member citext, text citext, whole numeric, worth float8, day date, flag boolean)"
            )
            with connection.cursor().copy("COPY neighbours FROM STDIN") as copy:
                for row in rows:
                    day = "5874897-12-31" if row[5] == "far" else row[5]
                    copy.write_row([*row[:5], day, row[6]])
            number = len(
                connection.execute(
                    "SELECT 1 FROM pg_tables WHERE tablename LIKE 'neighbours%'"
                ).fetchall()
            )
            connection.execute(f"ALTER TABLE neighbours RENAME TO neighbours{number}")
        return open_source(url, table=f"neighbours{number}")

    return place


def make_citext(connection: Any) -> None:
    """Text whose equality and order are those of its small letters."""
    connection.execute(
        """CREATE TYPE citext;
        CREATE FUNCTION citext_in(cstring) RETURNS citext AS 'textin'
            LANGUAGE internal IMMUTABLE STRICT;
        CREATE FUNCTION citext_out(citext) RETURNS cstring AS 'textout'
            LANGUAGE internal IMMUTABLE STRICT;
        CREATE TYPE citext (INPUT = citext_in, OUTPUT = citext_out, LIKE = text);
        CREATE CAST (citext AS text) WITHOUT FUNCTION AS IMPLICIT;
        CREATE CAST (text AS citext) WITHOUT FUNCTION AS ASSIGNMENT;
        CREATE FUNCTION citext_cmp(citext, citext) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS
            $$ SELECT bttextcmp(lower($1::text), lower($2::text)) $$;
        CREATE FUNCTION citext_hash(citext) RETURNS integer LANGUAGE sql IMMUTABLE STRICT AS
            $$ SELECT hashtext(lower($1::text)) $$;"""
    )
    for name, sign in (("lt", "<"), ("le", "<="), ("eq", "="), ("ge", ">="), ("gt", ">")):
        hashes = ", HASHES, MERGES" if sign == "=" else ""
        connection.execute(
            f"CREATE FUNCTION citext_{name}(citext, citext) RETURNS boolean LANGUAGE sql "
            f"IMMUTABLE STRICT AS $$ SELECT lower($1::text) {sign} lower($2::text) $$; "
            f"CREATE OPERATOR {sign} (LEFTARG = citext, RIGHTARG = citext, "
            f"FUNCTION = citext_{name}{hashes})"
        )
    connection.execute(
        """CREATE OPERATOR CLASS citext_ops DEFAULT FOR TYPE citext USING btree AS OPERATOR 1 <,
            OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
            FUNCTION 1 citext_cmp(citext, citext);
        CREATE OPERATOR CLASS citext_hash_ops DEFAULT FOR TYPE citext USING hash AS OPERATOR 1 =,
            FUNCTION 1 citext_hash(citext);"""
    )


def test_duckdb_files(tmp_path) -> None:
    hold(in_duckdb(tmp_path), 25, examples=max(1, PAIRS // 25))


def test_parquet_files(tmp_path) -> None:
    hold(in_parquet(tmp_path), 25, examples=max(1, PAIRS // 25))


def test_postgresql(postgres) -> None:
    hold(in_postgres(postgres.url()), 25, examples=max(1, PAIRS // 25))


def test_spark(spark, tmp_path) -> None:
    hold(in_spark(spark, tmp_path), 60, examples=max(3, PAIRS // 60))


def test_a_collation_that_is_kept_is_caught(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(duckdb_files, "_OF_TABLE", "{x}")
    with pytest.raises(AssertionError):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])


def test_a_limit_that_is_not_kept_is_caught(tmp_path, monkeypatch) -> None:
    """The same statement without the part that takes back what comes after the limit."""
    whole = bounded_histogram

    def unlimited(*given: Any, **options: Any) -> Bounded:
        return whole(*given, **{**options, "contribution_limit": None})

    monkeypatch.setitem(globals(), "bounded_histogram", unlimited)
    with pytest.raises(AssertionError):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])


def test_labels_that_are_not_limited_are_caught(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(measuring.Grouped, "first", lambda _, rows, __: rows)
    with pytest.raises(AssertionError):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])


def test_rows_that_are_not_limited_are_caught(tmp_path, monkeypatch) -> None:
    """Rows of busy units weigh as much as everybody's."""
    real = measuring.weighted_values

    def heavier(grouped: Any, per_key_limit: int, *, units: bool) -> Any:
        return real(grouped, 10 * per_key_limit, units=units)

    monkeypatch.setattr("farthing.engine.kinds.quantile.weighted_values", heavier)
    monkeypatch.setitem(globals(), "MEASURES", (*[QuantileQuery] * 8, *MEASURES))
    with pytest.raises(AssertionError):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])


def test_weights_that_are_moved_are_still_limited(tmp_path, monkeypatch) -> None:
    """What the rows with one value weigh at most, as if it were met already."""
    monkeypatch.setattr(measuring, "HEAVIEST", 2 * measuring.WEIGHT)
    hold(in_duckdb(tmp_path), 10, examples=4, phases=[Phase.generate])


def test_a_statement_that_fails_without_rows_is_caught(tmp_path, monkeypatch) -> None:
    real = DuckDBSource.fetch

    def failing(source: Any, statement: Any) -> pa.Table:
        rows = real(source, statement)
        assert rows.num_rows, "the engine failed"
        return rows

    monkeypatch.setattr(DuckDBSource, "fetch", failing)
    with pytest.raises(EngineFailure):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])


def test_totals_that_are_not_limited_are_caught(tmp_path, monkeypatch) -> None:
    """Two mistakes at once: all of a unit's rows count, and nothing is moved into its limit."""
    monkeypatch.setattr("farthing.engine.kinds.steps.scaled_to", lambda total, *_: total)
    real = measuring.totals

    def unlimited(grouped: Any, pairs: Any, amounts: Any) -> Any:
        return real(grouped, pairs, [(amount, 2**62) for amount, _ in amounts])

    monkeypatch.setattr("farthing.engine.kinds.measures.totals", unlimited)
    with pytest.raises(AssertionError):
        hold(in_duckdb(tmp_path), 10, examples=200, phases=[Phase.generate])
