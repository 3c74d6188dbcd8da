"""What clients look up about tables: pg_catalog, information_schema, version().

A small database in memory answers, without access to anything. It holds the declared columns in the
tables where PostgreSQL would describe them, and nothing else, so whatever is asked of it is no
question about people.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import TokenType
from sqlglot import expressions as sge
from sqlglot.errors import SqlglotError

from farthing.dbapi.statements import Result, ResultColumn
from farthing.errors import InvalidInput
from farthing.ledger.declared_data import Dataset
from farthing.schema import BOOLEAN, DATE, DECIMAL, INTEGER, REAL, TEXT, TIMESTAMP

#: How long a look may take, in seconds, and how many rows it may give.
LONGEST_LOOK, MOST_ROWS = 2.0, 10_000
SERVER_VERSION = "15.0 (farthing)"
#: By kind: the name of the type, its number, its size, its category, and its name in words.
_TYPES: Mapping[str, tuple[str, int, int, str, str]] = {
    INTEGER: ("int8", 20, 8, "N", "bigint"),
    REAL: ("float8", 701, 8, "N", "double precision"),
    DECIMAL: ("numeric", 1700, -1, "N", "numeric"),
    TEXT: ("text", 25, -1, "S", "text"),
    BOOLEAN: ("bool", 16, 1, "B", "boolean"),
    DATE: ("date", 1082, 4, "D", "date"),
    TIMESTAMP: ("timestamp", 1114, 8, "D", "timestamp without time zone"),
}
_KINDS = {"BIGINT": INTEGER, "INTEGER": INTEGER, "DOUBLE": REAL, "BOOLEAN": BOOLEAN, "DATE": DATE}
_SCHEMAS = ("pg_catalog", "information_schema")
_OWNER, _PUBLIC, _CATALOG, _INFORMATION, _TABLE, _DATABASE = 10, 2200, 11, 13000, 16384, 5
#: The tables of the catalogue with their columns: :i are numbers, 0 if nothing is said; :b truth
#: values, false; :l lists and others texts, missing.
_TABLES = {
    "pg_namespace": "oid:i nspname nspowner:i nspacl",
    "pg_class": "oid:i relname relnamespace:i relowner:i relkind relnatts:i reltype:i relam:i "
    "reltablespace:i relpages:i reltuples:i reltoastrelid:i relhasindex:b relisshared:b "
    "relpersistence relchecks:i relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b "
    "relforcerowsecurity:b relreplident relispartition:b reloftype:i relacl reloptions "
    "relpartbound relispopulated:b relfilenode:i",
    "pg_attribute": "attrelid:i attname atttypid:i attlen:i attnum:i atttypmod:i attnotnull:b "
    "atthasdef:b attisdropped:b attidentity attgenerated attcollation:i attstorage attcompression "
    "attstattarget:i attndims:i attislocal:b attacl attoptions attfdwoptions",
    "pg_type": "oid:i typname typnamespace:i typowner:i typlen:i typtype typcategory typrelid:i "
    "typelem:i typarray:i typbasetype:i typtypmod:i typnotnull:b typcollation:i typdelim "
    "typisdefined:b typbyval:b typinput typndims:i",
    "pg_database": "oid:i datname datdba:i encoding:i datcollate datctype daticulocale "
    "datlocprovider datacl datistemplate:b datallowconn:b datconnlimit:i",
    "pg_roles": "oid:i rolname rolsuper:b rolinherit:b rolcanlogin:b rolcreatedb:b rolcreaterole:b",
    "pg_tables": "schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b",
    "pg_index": "indexrelid:i indrelid:i indisunique:b indisprimary:b indisvalid:b indkey:l "
    "indnatts:i indisclustered:b indisreplident:b indexprs indpred indoption",
    "pg_constraint": "oid:i conname connamespace:i contype condeferrable:b condeferred:b "
    "conrelid:i confrelid:i conkey:l confkey:l conindid:i conparentid:i confupdtype confdeltype "
    "convalidated:b contypid:i",
    "pg_attrdef": "oid:i adrelid:i adnum:i adbin",
    "pg_description": "objoid:i classoid:i objsubid:i description",
    "pg_shdescription": "objoid:i classoid:i description",
    "pg_inherits": "inhrelid:i inhparent:i inhseqno:i inhdetachpending:b",
    "pg_policy": "oid:i polname polrelid:i polcmd polpermissive:b polroles:l polqual polwithcheck",
    "pg_am": "oid:i amname amtype",
    "pg_collation": "oid:i collname collnamespace:i",
    "pg_proc": "oid:i proname pronamespace:i prorettype:i proargtypes prokind",
    "pg_trigger": "oid:i tgrelid:i tgname tgisinternal:b tgenabled tgparentid:i",
    "pg_statistic_ext": "oid:i stxrelid:i stxname stxnamespace:i stxkind:l stxstattarget:i",
    "pg_publication": "oid:i pubname puballtables:b",
    "pg_publication_rel": "oid:i prpubid:i prrelid:i",
    "pg_publication_namespace": "oid:i pnpubid:i pnnspid:i",
    "pg_foreign_table": "ftrelid:i ftserver:i",
    "pg_enum": "oid:i enumtypid:i enumlabel enumsortorder:i",
    "pg_range": "rngtypid:i rngsubtype:i",
    "pg_views": "schemaname viewname viewowner definition",
    "pg_matviews": "schemaname matviewname",
    "pg_settings": "name setting",
    "schemata": "catalog_name schema_name schema_owner",
    "tables": "table_catalog table_schema table_name table_type is_insertable_into",
    "columns": "table_catalog table_schema table_name column_name ordinal_position:i "
    "column_default is_nullable data_type udt_name character_maximum_length:i numeric_precision:i "
    "numeric_scale:i datetime_precision:i is_identity is_generated",
    "views": "table_catalog table_schema table_name view_definition",
    "table_constraints": "constraint_name table_schema table_name constraint_type",
    "key_column_usage": "constraint_name table_schema table_name column_name ordinal_position:i",
}
_TYPED = {"": "VARCHAR", "i": "BIGINT DEFAULT 0", "b": "BOOLEAN DEFAULT false", "l": "BIGINT[]"}
#: Functions that clients expect of PostgreSQL.
_FUNCTIONS = (
    *("pg_table_is_visible(oid) AS true", "pg_type_is_visible(oid) AS true"),
    *("pg_function_is_visible(oid) AS true", "pg_get_userbyid(oid) AS 'owner'"),
    *("pg_get_partkeydef(oid) AS NULL", "pg_get_expr(e, oid) AS NULL, (e, oid, p) AS NULL"),
    *("pg_relation_is_publishable(oid) AS false", "pg_encoding_to_char(code) AS 'UTF8'"),
    *("pg_is_in_recovery() AS false", "pg_backend_pid() AS 0", "quote_ident(word) AS word"),
    *("obj_description(oid, name) AS NULL", "col_description(oid, number) AS NULL"),
    *("shobj_description(oid, name) AS NULL", "pg_get_indexdef(oid) AS NULL, (oid, n, p) AS NULL"),
    *("pg_get_constraintdef(oid) AS NULL, (oid, p) AS NULL", "pg_total_relation_size(oid) AS 0"),
    *("has_schema_privilege(name, what) AS true", "has_table_privilege(name, what) AS true"),
    *("pg_table_size(oid) AS 0", "pg_relation_size(oid) AS 0", "pg_size_pretty(size) AS ''"),
    *("to_regtype(name) AS NULL", "to_regclass(name) AS NULL"),
    *("pg_get_statisticsobjdef_columns(oid) AS NULL", "pg_get_viewdef(oid) AS NULL"),
)


def parsed(text: str) -> sge.Query | None:
    """The tree of a SELECT in PostgreSQL's dialect; None if it is none."""
    try:
        tree = sqlglot.parse_one(text, read="postgres")
    except (SqlglotError, RecursionError, ValueError):
        return None
    return tree if isinstance(tree, sge.Query) else None


def is_about_catalogue(tree: sge.Expr | None) -> bool:
    """Whether a SELECT looks at nothing but the catalogue: its tables, or no table at all."""
    if not isinstance(tree, sge.Query):
        return False
    named = {cte.alias for cte in tree.find_all(sge.CTE)}
    tables = [table for table in tree.find_all(sge.Table) if table.name not in named]
    return all(
        table.db.lower() in _SCHEMAS or (not table.db and table.name.lower().startswith("pg_"))
        for table in tables
    )


class Catalogue:
    """The declared columns of a dataset, where PostgreSQL describes a table."""

    def __init__(self, about: Dataset) -> None:
        self._lock = threading.Lock()
        self._database = duckdb.connect(":memory:", config={"memory_limit": "64MB", "threads": 1})
        run = self._database.execute
        for name, columns in _TABLES.items():
            typed = (column.partition(":") for column in columns.split())
            listed = ", ".join(f"{column} {_TYPED[kind]}" for column, _, kind in typed)
            run(f"CREATE TABLE {_own(name)} ({listed})")
        for name, rows in _rows(about).items():
            for row in rows:
                marks = ", ".join("?" for _ in row)
                run(
                    f"INSERT INTO {_own(name)} ({', '.join(row)}) VALUES ({marks})", [*row.values()]
                )
        words = {oid: text for _, oid, _, _, text in _TYPES.values()}
        cases = " ".join(f"WHEN {oid} THEN '{text}'" for oid, text in words.items())
        constants = {"version": f"PostgreSQL {SERVER_VERSION}", "current_schema": "public"}
        constants |= {"current_database": about.name, "current_user": "analyst"}
        told = (f"{name}() AS '{_escaped(text)}'" for name, text in constants.items())
        shown = f"format_type(oid, mod) AS CASE oid {cases} ELSE 'text' END"
        for function in (*_FUNCTIONS, *told, shown):
            run(f"CREATE MACRO {_own(function)}")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    def look(self, tree: sge.Query) -> Result:
        """What the catalogue says; InvalidInput if it cannot say it."""
        if _finds_nothing(tree):
            return Result(tuple(ResultColumn(name, TEXT) for name in tree.named_selects))
        try:
            statement = _in_own_names(tree).sql(dialect="duckdb")
        except (SqlglotError, RecursionError, ValueError):
            raise InvalidInput("the catalogue cannot be asked this") from None
        with self._lock:
            clock = threading.Timer(LONGEST_LOOK, self._database.interrupt)
            clock.start()
            try:
                found = self._database.execute(statement)
                rows = found.fetchmany(MOST_ROWS)
                described = found.description or []
            except (duckdb.Error, RuntimeError, MemoryError, OverflowError):
                raise InvalidInput("the catalogue cannot be asked this") from None
            finally:
                clock.cancel()
        columns = tuple(ResultColumn(str(d[0]), _KINDS.get(str(d[1]), TEXT)) for d in described)
        return Result(columns, tuple(tuple(map(_plain, row)) for row in rows))

    def shut(self) -> None:
        """Give the database back."""
        self._database.close()


def _rows(about: Dataset) -> dict[str, Sequence[Mapping[str, Any]]]:
    """What is known about a dataset, by the table of the catalogue."""
    columns = [(name, *_TYPES[kind]) for name, kind in about.declared_schema.kinds.items()]
    schemas = {"pg_catalog": _CATALOG, "public": _PUBLIC, "information_schema": _INFORMATION}
    place = {"table_catalog": about.name, "table_schema": "public", "table_name": about.name}
    table = {"relkind": "r", "relpersistence": "p", "relreplident": "d", "relam": 2}
    attribute = {"attrelid": _TABLE, "atttypmod": -1, "attidentity": "", "attgenerated": ""}
    described = {"typnamespace": _CATALOG, "typtype": "b", "typtypmod": -1, "typdelim": ","}
    database = {"datcollate": "C", "datctype": "C", "datlocprovider": "c", "datallowconn": True}
    return {
        "pg_namespace": [{"oid": oid, "nspname": name} for name, oid in schemas.items()],
        "pg_class": [{"oid": _TABLE, "relname": about.name, "relnamespace": _PUBLIC, **table}],
        "pg_attribute": [
            {"attname": name, "attnum": number, "atttypid": oid, "attlen": size, **attribute}
            for number, (name, _, oid, size, _, _) in enumerate(columns, 1)
        ],
        "pg_type": [
            {"oid": oid, "typname": name, "typlen": size, "typcategory": category, **described}
            for name, oid, size, category, _ in _TYPES.values()
        ],
        "pg_database": [{"oid": _DATABASE, "datname": about.name, "encoding": 6, **database}],
        "pg_roles": [{"oid": _OWNER, "rolname": "owner"}],
        "pg_am": [{"oid": 2, "amname": "heap", "amtype": "t"}],
        "pg_tables": [{"schemaname": "public", "tablename": about.name, "tableowner": "owner"}],
        "schemata": [{"catalog_name": about.name, "schema_name": name} for name in schemas],
        "tables": [{**place, "table_type": "BASE TABLE", "is_insertable_into": "NO"}],
        "columns": [
            {
                **place,
                "column_name": name,
                "ordinal_position": number,
                "is_nullable": "YES",
                "data_type": words,
                "udt_name": short,
            }
            for number, (name, short, _, _, _, words) in enumerate(columns, 1)
        ],
    }


#: Tables of things that are not here: publications, policies, indexes.
_EMPTY = _TABLES.keys() - {"pg_namespace", "pg_class", "pg_attribute", "pg_type", "pg_database"}
_EMPTY -= {"pg_roles", "pg_am", "pg_tables", "schemata", "tables", "columns"}


def _finds_nothing(tree: sge.Expr) -> bool:
    """Whether every SELECT of it begins with a table of things that are not here."""
    parts = [tree] if isinstance(tree, sge.Select) else list(tree.find_all(sge.Select))
    outer = [part for part in parts if part is tree or isinstance(part.parent, sge.SetOperation)]
    froms = [part.args.get("from_") for part in outer]
    return bool(froms) and all(one is not None and one.this.name in _EMPTY for one in froms)


def _in_own_names(tree: sge.Expr) -> sge.Expr:
    """The statement about our tables and functions, which have names of their own: those of
    DuckDB's catalogue would answer otherwise."""
    ours = {*_TABLES, *(function.partition("(")[0] for function in _FUNCTIONS)}
    ours |= {"version", "current_schema", "current_database", "current_user", "format_type"}

    def renamed(node: sge.Expr) -> sge.Expr:
        if isinstance(node, sge.Dot) and isinstance(node.expression, sge.Func):
            return renamed(node.expression)  # pg_catalog.function(…)
        if isinstance(node, sge.Column) and node.db:
            return sge.column(node.this, table=node.table)
        if isinstance(node, sge.Collate):
            return node.this  # type: ignore[no-any-return] # a part of the tree
        if isinstance(node, sge.Operator):
            return sge.RegexpLike(this=node.this, expression=node.expression)
        if isinstance(node, sge.Cast):
            kind = node.to.sql().lower().removeprefix("pg_catalog.")
            if kind == "regclass" and isinstance(node.this, sge.Literal):  # its number
                own = sge.select("oid").from_(_own("pg_class"))
                return own.where(sge.column("relname").eq(node.this)).subquery()
            return sge.cast(node.this, "VARCHAR" if kind.startswith("reg") else kind)
        if isinstance(node, sge.Table) and node.name.lower() in ours:
            alias = node.alias or node.name
            return sge.alias_(sge.to_table(_own(node.name.lower())), alias, table=True)
        if isinstance(node, sge.Func):
            name = _name_of(node)
            if name in ours:
                given = node.expressions if isinstance(node, sge.Anonymous) else []
                return sge.Anonymous(this=_own(name), expressions=given)
        return node

    named = tree.copy()
    if isinstance(named, sge.Select):
        named.set("expressions", [_with_name(one) for one in named.expressions])
    for node in reversed(list(named.walk())):  # what is inside comes first
        if (other := renamed(node)) is not node:
            node.replace(other)
    return named


def _with_name(entry: sge.Expr) -> sge.Expr:
    """A function after SELECT is called by its name, as in PostgreSQL."""
    bare = entry.expression if isinstance(entry, sge.Dot) else entry
    if not isinstance(bare, sge.Func):
        return entry
    return sge.alias_(entry, _name_of(bare), quoted=True)


def _name_of(function: sge.Func) -> str:
    if isinstance(function, sge.CurrentVersion):
        return "version"
    return (function.name if isinstance(function, sge.Anonymous) else function.sql_name()).lower()


def _own(name: str) -> str:
    return f"own_{name}"


def _escaped(text: str) -> str:
    return text.replace("'", "''")


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


@lru_cache(maxsize=1024)
def kind_of(text: str) -> str:
    """`look` for the catalogue, `question` for a SELECT about people, else `session`."""
    words = text.strip()
    if re.match(r"(EXPLAIN|SHOW)\b", words, re.IGNORECASE):
        return "question" if re.match(r"EXPLAIN\b", words, re.IGNORECASE) else "session"
    tree = parsed(words)
    if tree is None or not re.match(r"\(*\s*(SELECT|WITH|VALUES)\b", words, re.IGNORECASE):
        return "question" if re.match(r"(SELECT|WITH)\b", words, re.IGNORECASE) else "session"
    return "look" if is_about_catalogue(tree) else "question"


def split_statements(text: str) -> list[str]:
    """The statements of a text, without the semicolons between them."""
    try:
        tokens = sqlglot.tokenize(text, read="postgres")
    except SqlglotError:
        return [text]
    ends = [token.start for token in tokens if token.token_type == TokenType.SEMICOLON]
    starts = [0, *(end + 1 for end in ends)]
    pieces = (text[start:end] for start, end in zip(starts, [*ends, len(text)], strict=True))
    return [piece.strip() for piece in pieces if piece.strip()]
