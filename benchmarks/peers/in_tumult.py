"""Tumult Analytics, on Spark in this process. One number in pure DP, many in zCDP."""

import os
import sys
from functools import cache
from typing import Any

from asking import Releases, answer_all
from pyspark.sql import DataFrame, SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)


@cache
def _spark() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "8g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", 8)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _session(budget: Any, frame: DataFrame) -> Session:
    change = AddRowsWithID("member")
    return Session.from_dataframe(budget, "events", frame, protected_change=change)


def ask(given: dict[str, Any]) -> Releases:
    """One of the questions."""
    frame, limit = _spark().read.parquet(given["path"]), given["limit"]
    if given["question"] == "top k":
        return _top_k(given, frame.select("member", "article"))
    bounds = {"low": 0, "high": given["upper"], "name": "n"}
    rows = QueryBuilder("events")
    if given["question"] == "people with many rows":
        raise NotImplementedError("no aggregates of one person's rows")
    if given["question"] == "ratio":
        return _ratio(given, frame)
    if given["question"] == "grouped mean":
        keys = KeySet.from_dict({"team": list(range(given["groups"]))})
        rows = rows.enforce(MaxGroupsPerID("team", limit)).enforce(MaxRowsPerGroupPerID("team", 1))
        budget: Any = RhoZCDPBudget(given["rho"])
        query: Any = rows.groupby(keys).average("worth", **bounds)
    else:
        rows = rows.enforce(MaxRowsPerID(limit))
        budget = PureDPBudget(given["epsilon"])
        of_rows = {"median": rows.median, "mean": rows.average}
        query = of_rows.get(given["question"], rows.sum)("worth", **bounds)
    if given["question"] == "scale of a sum":
        (noise,) = _session(budget, frame)._noise_info(query, budget)
        return {"": float(noise["noise_parameter"])}
    found = _session(budget, frame).evaluate(query, budget).collect()
    grouped = given["question"] == "grouped mean"
    return {str(r.team) if grouped else "": float(r.n) for r in found}


def _ratio(given: dict[str, Any], frame: DataFrame) -> Releases:
    """Two sums, each with half of ε."""
    session, half = _session(PureDPBudget(given["epsilon"]), frame), given["epsilon"] / 2
    rows = QueryBuilder("events").enforce(MaxRowsPerID(given["limit"]))
    totals = []
    for column, most in (("worth", given["upper"]), ("pieces", 9)):
        query = rows.sum(column, low=0, high=most, name="n")
        totals.append(session.evaluate(query, PureDPBudget(half)).collect()[0].n)
    return {"": float(totals[0]) / max(float(totals[1]), 1.0)}


def _top_k(given: dict[str, Any], frame: DataFrame) -> Releases:
    """Keys first, with 1/30 of ε and all of δ (its only mechanism with one), then counts."""
    epsilon, delta = given["epsilon"], given["delta"]
    session = _session(ApproxDPBudget(epsilon, delta), frame)
    bounded = QueryBuilder("events").enforce(MaxRowsPerGroupPerID("article", 1))
    bounded = bounded.enforce(MaxGroupsPerID("article", given["limit"]))
    keys = session.evaluate(bounded.get_groups(["article"]), ApproxDPBudget(epsilon / 30, delta))
    counting = bounded.groupby(KeySet.from_dataframe(keys)).count(name="n")
    counted = session.evaluate(counting, session.remaining_privacy_budget)
    rows = counted.orderBy("n", ascending=False).limit(given["k"]).collect()
    return {str(r.article): float(r.n) for r in rows}


answer_all("tmlt.analytics", ask)
