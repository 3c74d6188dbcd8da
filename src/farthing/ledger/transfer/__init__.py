"""Books that leave one ledger and arrive in another: export, import, move, back up, restore.

At no moment can two ledgers spend from the same budget.
"""
