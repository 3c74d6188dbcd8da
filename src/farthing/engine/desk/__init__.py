"""The owner's desk.

`operations` declares what an operation is; `data`, `budgets` and `book` have all of them; `desk`
is the class that owners hold.
"""

from farthing.engine.desk.budgets import certificate_of, matching_tariff
from farthing.engine.desk.data import FIRST_VERSION, Declaration
from farthing.engine.desk.desk import Desk

__all__ = ["FIRST_VERSION", "Declaration", "Desk", "certificate_of", "matching_tariff"]
