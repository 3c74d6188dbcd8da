"""SmartNoise SQL. Its odometer adds half of the δ it is given: it is given two thirds of ours."""

from functools import cache
from typing import Any

import pandas
from asking import Releases, answer_all
from snsql import Privacy, from_connection

QUERIES = {
    "sum": "SELECT SUM(worth) AS n FROM main.events",
    "grouped mean": "SELECT team, AVG(worth) AS n FROM main.events GROUP BY team",
    "mean": "SELECT AVG(worth) AS n FROM main.events",
    "ratio": "SELECT SUM(worth) / SUM(pieces) AS n FROM main.events",
    "people with many rows": "SELECT COUNT(*) AS n FROM (SELECT member, COUNT(*) AS rows FROM "
    "main.events GROUP BY member) AS people WHERE rows > 12",
    "top k": "SELECT article, COUNT(DISTINCT member) AS n FROM main.events GROUP BY article",
}


def ask(given: dict[str, Any]) -> Releases:
    """Where several columns are drawn each gets its part of ε."""
    if given["question"] not in QUERIES:
        raise NotImplementedError("no quantiles")
    query, top = QUERIES[given["question"]], given["question"] == "top k"
    if top:
        query += f" ORDER BY n DESC LIMIT {given['k']}"
    rows = _rows(given["path"])
    integers = {"team": {"type": "int"}, "article": {"type": "int"}}
    table: dict[str, Any] = {"member": {"type": "int", "private_id": True}, **integers}
    table["worth"] = {"type": "int", "lower": 0, "upper": given["upper"]}
    table["pieces"] = {"type": "int", "lower": 1, "upper": 9}
    table = {name: kind for name, kind in table.items() if name in rows.columns}
    table |= {"max_ids": given["limit"], "sample_max_ids": top, "censor_dims": top}
    epsilon, delta = given["epsilon"], given["delta"] / 1.5
    for _ in range(2):
        privacy = Privacy(epsilon=epsilon, delta=delta)
        reader = from_connection(rows, privacy=privacy, metadata={"": {"main": {"events": table}}})
        spent = reader.get_privacy_cost(query)
        epsilon *= min(1, given["epsilon"] / spent[0])
    assert spent[0] <= given["epsilon"] * 1.0001, spent
    assert spent[1] <= given["delta"], spent
    found = reader.execute(query)[1:]
    return {str(r[0]): r[1] for r in found} if len(found[0]) > 1 else {"": found[0][0]}


@cache
def _rows(path: str) -> pandas.DataFrame:
    rows = pandas.read_parquet(path)
    return rows.drop(columns=[name for name in ("title", "day", "event") if name in rows.columns])


answer_all("smartnoise-sql", ask)
