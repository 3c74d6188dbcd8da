"""diffprivlib protects entries of an array, so it is handed one number for each member.

A member's total is made by hand, outside of what it protects. It has no groups and no limits per
member: what needs them it cannot be asked. Its accountant is asked what a list of uses costs.
"""

from typing import Any

import pandas
from asking import Releases, answer_all
from diffprivlib import BudgetAccountant, tools


def ask(given: dict[str, Any]) -> Releases:
    """A sum of totals; or the ε of k uses of ε-DP."""
    if given["question"] == "sum":
        rows = pandas.read_parquet(given["path"], columns=["member", "worth"])
        totals = rows.groupby("member")["worth"].sum().to_numpy()
        bounds = (0, given["limit"] * given["upper"])
        return {"": float(tools.sum(totals, epsilon=given["epsilon"], bounds=bounds))}
    if given["question"] == "uses of ε-DP":
        spent = [(given["epsilon"], 0.0)] * given["k"]
        return {"": BudgetAccountant(spent_budget=spent, slack=given["delta"]).total()[0]}
    raise NotImplementedError("no groups and no limits per member")


answer_all("diffprivlib", ask)
