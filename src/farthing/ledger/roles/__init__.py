"""Who may do what with an open ledger: the owner decides, an analyst spends, a reader looks.

`charges` and `conversations` are how an analyst spends.
"""
