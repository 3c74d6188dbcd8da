"""Who may do what with an open ledger: the owner decides, an analyst spends, a reader looks.

`snapshot` and `releases` are what an analyst reads: the state at one moment, and earlier answers.
"""
