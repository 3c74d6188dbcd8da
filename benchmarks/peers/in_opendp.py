"""OpenDP's Polars interface.

truncate_num_groups(keep="sample") fails in 0.16.0 (two fields of one name), and "first" would
keep the smallest keys; one row per key and then `limit` rows is the same bound. One number is
asked for in pure DP (Laplace noise), many in zCDP (Gaussian noise).
"""

from typing import Any

import opendp.prelude as dp
import polars as pl
from asking import Releases, answer_all

dp.enable_features("contrib")


def ask(given: dict[str, Any]) -> Releases:
    """One of the questions."""
    question, upper, limit = given["question"], given["upper"], given["limit"]
    frame = pl.scan_parquet(given["path"])
    context = dp.Context.compositor(
        data=frame.drop("title", strict=False),
        privacy_loss=_loss(given),
        split_evenly_over=1,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("member")),
        margins=[
            dp.polars.Margin(by=by, max_length=given["rows"])
            for by in ([], *([["team"]] if given["groups"] else []))
            if not question.startswith("top k")
        ],
    )
    if question.startswith("top k"):
        bounded = context.query().truncate_per_group(1, by=["article"]).truncate_per_group(limit)
        released = bounded.group_by("article").agg(dp.len().alias("n")).release().collect()
        rows = released.sort("n", descending=True).head(given["k"]).rows()
        return {str(label): float(count) for label, count in rows}
    one_row = pl.col("worth").fill_null(0)
    if question == "grouped mean":
        bounded = context.query().truncate_per_group(1, by=["team"]).truncate_per_group(limit)
        both = one_row.dp.sum((0, upper)).alias("n"), dp.len().alias("rows")
        teams = pl.LazyFrame({"team": list(range(given["groups"]))}, schema={"team": pl.Int64})
        rows = bounded.group_by("team").agg(*both).with_keys(teams).release().collect()
        return {str(r["team"]): r["n"] / max(r["rows"], 1) for r in rows.iter_rows(named=True)}
    if question == "people with many rows":
        counted = context.query().group_by("member").agg(pl.len().alias("n"))
        busy = counted.filter(pl.col("n") > given["k"]).select(dp.len())
        return {"": float(busy.release().collect().item())}
    bounded = context.query().truncate_per_group(limit)
    if question in ("mean", "ratio"):
        pieces = pl.col("pieces").fill_null(0).dp.sum((0, 9))
        total, per = one_row.dp.sum((0, upper)), dp.len() if question == "mean" else pieces
        released = bounded.select(total.alias("n"), per.alias("per")).release().collect()
        return {"": released["n"].item() / max(released["per"].item(), 1)}
    if question == "scale of a sum":
        summed = bounded.select(one_row.dp.sum((0, upper)))
        return {"": float(summed.summarize()["scale"].item())}
    if question == "sum":
        asked = one_row.dp.sum((0, upper))
    else:
        asked = one_row.dp.median(list(range(0, upper + 1, 10)))
    return {"": float(bounded.select(asked).release().collect().item())}


def _loss(given: dict[str, Any]) -> Any:
    """Pure DP for one number; zCDP for many; with a δ where keys are not known."""
    epsilon, delta, leak = given["epsilon"], given["delta"], given["leak"]
    one = ("sum", "scale of a sum", "median", "mean", "ratio", "people with many rows")
    if given["question"] in one:
        return dp.loss_of(epsilon=epsilon)
    if given["question"] == "grouped mean":
        return dp.loss_of(rho=given["rho"])
    if given["question"] == "top k, Laplace":
        return dp.loss_of(epsilon=epsilon, delta=delta)

    def noisy(scale: float) -> Any:
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        made = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(made, delta=delta - leak)

    scale = dp.binary_search_param(noisy, d_in=1.0, d_out=(epsilon, delta - leak))
    return dp.loss_of(rho=0.5 / scale**2, delta=leak)


answer_all("opendp", ask)
